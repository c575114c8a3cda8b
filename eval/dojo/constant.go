package dojo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"regexp"
)

// maxConstant bounds the bytes of an expression that is computed, and with it how deep it nests.
const maxConstant = 256

// constant computes an expression of decimal numbers, + - * / and parentheses exactly, and returns it as JSON; false for every
// other expression, and for a value without an end. Python and Go parse such an expression alike.
func constant(text string) (string, bool) {
	if len(text) > maxConstant {
		return "", false
	}
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return "", false
	}
	v := valueOf(expr)
	if v == nil {
		return "", false
	}
	digits, exact := v.FloatPrec()
	return v.FloatString(digits), exact
}

var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// valueOf returns nil if the expression is not one of numbers.
func valueOf(expr ast.Expr) *big.Rat {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if v, ok := new(big.Rat).SetString(e.Value); ok && decimal.MatchString(e.Value) {
			return v
		}
	case *ast.ParenExpr:
		return valueOf(e.X)
	case *ast.UnaryExpr:
		if v := valueOf(e.X); v != nil && e.Op == token.SUB {
			return v.Neg(v)
		}
	case *ast.BinaryExpr:
		a, b := valueOf(e.X), valueOf(e.Y)
		switch {
		case a == nil || b == nil:
		case e.Op == token.ADD:
			return a.Add(a, b)
		case e.Op == token.SUB:
			return a.Sub(a, b)
		case e.Op == token.MUL:
			return a.Mul(a, b)
		case e.Op == token.QUO && b.Sign() != 0:
			return a.Quo(a, b)
		}
	}
	return nil
}
