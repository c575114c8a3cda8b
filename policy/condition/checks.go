package condition

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Limits of the pattern of a `matches`.
const (
	MaxPattern = 1024 // bytes
	MaxRegex   = 2048 // instructions that it compiles to
)

// check rejects expressions that CEL allows and the package comment excludes.
func check(src string, a *ast.AST) *Error {
	all := ast.MatchDescendants(ast.NavigateAST(a), ast.AllMatcher())
	maps := false
	for _, e := range all {
		maps = maps || e.Kind() == ast.MapKind
	}
	for _, e := range all {
		id, problem, remedy := refused(a, e, maps)
		if problem != "" {
			return errorAt(a.SourceInfo().GetStartLocation(id), problem, remedy)
		}
	}
	return checkLiterals(src, a)
}

func refused(a *ast.AST, e ast.NavigableExpr, maps bool) (id int64, problem, remedy string) {
	switch e.Kind() {
	case ast.StructKind:
		return e.ID(), "messages cannot be made here", "use a list or a map"
	case ast.ComprehensionKind:
		return loopRefused(a, e.AsComprehension(), e.ID(), maps)
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		if strings.HasPrefix(call.FunctionName(), historyPrefix) {
			_, id, problem, remedy = queryOf(call)
			return id, problem, remedy
		}
		switch call.FunctionName() {
		case "matches":
			return patternRefused(args[len(args)-1])
		case "format":
			if maps {
				return e.ID(), "where a map is written out, format has no place: CEL walks such a map in no order", "format its parts"
			}
		}
		if strings.HasPrefix(call.FunctionName(), "get") && len(args) == 1 {
			return zoneRefused(args[0])
		}
	}
	return 0, "", ""
}

// loopRefused rejects loops over unordered values, and loops that hide a name.
func loopRefused(a *ast.AST, c ast.ComprehensionExpr, id int64, maps bool) (_ int64, problem, remedy string) {
	for _, n := range append(Names(), Name{Name: historyPrefix}) {
		root, _, _ := strings.Cut(n.Name, ".")
		if root == c.IterVar() {
			return id, fmt.Sprintf("the loop calls its element %s, which has a meaning already", root), "choose another name"
		}
	}
	if maps && a.GetType(c.IterRange().ID()).Kind() != types.ListKind {
		return id, "where a map is written out, loops go over lists only: CEL walks such a map in no order",
			"compare names instead: k == 'a' || k == 'b'"
	}
	return 0, "", ""
}

func patternRefused(pattern ast.Expr) (id int64, problem, remedy string) {
	text, ok := literalText(pattern)
	if !ok {
		return pattern.ID(), "the pattern of matches must be written out", "use ==, contains, startsWith or endsWith"
	}
	problem, remedy = checkPattern(text)
	return pattern.ID(), problem, remedy
}

// checkPattern returns the problem of a pattern; empty if there is none.
func checkPattern(text string) (problem, remedy string) {
	if len(text) > MaxPattern {
		return fmt.Sprintf("the pattern has %d bytes, more than %d", len(text), MaxPattern), "split it"
	}
	if _, err := regexp.Compile(text); err != nil {
		return err.Error(), "patterns are RE2: no lookaround, no backreferences"
	}
	if n, err := types.RegexProgramSize(text); err != nil || n > MaxRegex {
		return fmt.Sprintf("the pattern compiles to %d instructions, more than %d", n, MaxRegex), "use smaller repetitions"
	}
	return "", ""
}

// offset is a time zone that is the same on every machine and in every year.
var offset = regexp.MustCompile(`^(UTC|[+-]?([01][0-9]|2[0-3]):[0-5][0-9])$`)

func zoneRefused(zone ast.Expr) (id int64, problem, remedy string) {
	if text, ok := literalText(zone); ok && offset.MatchString(text) {
		return 0, "", ""
	}
	return zone.ID(), "the time zone must be written out as an offset: what a name means is up to the machine",
		"write UTC, +02:00 or -05:30"
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
