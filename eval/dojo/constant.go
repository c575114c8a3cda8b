package dojo

import (
	"math/big"
	"strings"
)

// maxConstant bounds the bytes of an expression that is computed, and with it how deep it nests.
const maxConstant = 256

// constant computes an expression of decimal numbers, + - * / and parentheses, exactly; false if it is anything else. What
// names nothing needs no environment.
func constant(text string) (*big.Rat, bool) {
	if len(text) > maxConstant {
		return nil, false
	}
	p := &reckoner{rest: strings.TrimLeft(text, " ")}
	v := p.sum()
	return v, v != nil && p.rest == ""
}

// decimal writes a number as JSON has it; false if it has no end.
func decimal(v *big.Rat) (string, bool) {
	digits, exact := v.FloatPrec()
	return v.FloatString(digits), exact
}

// reckoner reads an expression from left to right. nil is what is no number.
type reckoner struct{ rest string }

// take passes over one of the characters, and the spaces behind it.
func (p *reckoner) take(of string) byte {
	if p.rest == "" || !strings.Contains(of, p.rest[:1]) {
		return 0
	}
	c := p.rest[0]
	p.rest = strings.TrimLeft(p.rest[1:], " ")
	return c
}

func (p *reckoner) sum() *big.Rat {
	v := p.product()
	for v != nil {
		op := p.take("+-")
		if op == 0 {
			return v
		}
		w := p.product()
		switch {
		case w == nil:
			return nil
		case op == '+':
			v = new(big.Rat).Add(v, w)
		default:
			v = new(big.Rat).Sub(v, w)
		}
	}
	return nil
}

func (p *reckoner) product() *big.Rat {
	v := p.factor()
	for v != nil {
		op := p.take("*/")
		if op == 0 {
			return v
		}
		w := p.factor()
		switch {
		case w == nil || op == '/' && w.Sign() == 0:
			return nil
		case op == '*':
			v = new(big.Rat).Mul(v, w)
		default:
			v = new(big.Rat).Quo(v, w)
		}
	}
	return nil
}

func (p *reckoner) factor() *big.Rat {
	switch {
	case p.take("-") != 0:
		if v := p.factor(); v != nil {
			return new(big.Rat).Neg(v)
		}
		return nil
	case p.take("(") != 0:
		v := p.sum()
		if p.take(")") == 0 {
			return nil
		}
		return v
	}
	n := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789."))
	digits := p.rest[:n]
	p.rest = strings.TrimLeft(p.rest[n:], " ")
	if n == 0 || strings.Count(digits, ".") > 1 || strings.Trim(digits, ".") != digits {
		return nil
	}
	v, ok := new(big.Rat).SetString(digits)
	if !ok {
		return nil
	}
	return v
}
