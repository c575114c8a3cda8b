package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Limits of the pattern of a `matches`.
const (
	MaxPattern = 1024 // bytes
	MaxRegex   = 2048 // instructions that it compiles to
)

// checkSubset rejects expressions that CEL allows and the package comment excludes.
func checkSubset(src string, a *ast.AST) *Error {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.AllMatcher()) {
		if id, problem, remedy := exprRefused(e); problem != "" {
			return errorAt(a.SourceInfo().GetStartLocation(id), problem, remedy)
		}
	}
	return checkLiterals(src, a)
}

// omitted are the functions of CEL's library strings whose work or result can be far larger than
// their operands, and those that only format. CEL charges a function after it ran.
var omitted = []string{"format", "indexOf", "join", "lastIndexOf", "replace", "reverse", "strings.quote"}

func exprRefused(e ast.Expr) (id int64, problem, remedy string) {
	switch e.Kind() {
	case ast.StructKind:
		return e.ID(), "messages cannot be made here", "use a list"
	case ast.MapKind:
		return e.ID(), "a map cannot be written here", "compare its members, or choose: env == 'dev' ? 10 : 1000"
	case ast.ComprehensionKind:
		return loopRefused(e)
	case ast.CallKind:
		return callRefused(e)
	}
	return 0, "", ""
}

func callRefused(e ast.Expr) (id int64, problem, remedy string) {
	name, args := e.AsCall().FunctionName(), e.AsCall().Args()
	switch {
	case strings.HasPrefix(name, historyPrefix):
		_, id, problem, remedy = queryOf(e.AsCall())
		return id, problem, remedy
	case name == foundFunction, name == originFunction:
		return pathRefused(e.AsCall())
	case name == "matches":
		return patternRefused(args[len(args)-1])
	case slices.Contains(omitted, name):
		return e.ID(), "expressions do not have the function " + name,
			"use contains, startsWith, endsWith, matches, split or substring"
	case strings.HasPrefix(name, "get") && len(args) == 1:
		return zoneRefused(args[0])
	}
	return 0, "", ""
}

// loopRefused rejects loops whose variable hides a name of policies and risk rules.
func loopRefused(e ast.Expr) (id int64, problem, remedy string) {
	for _, n := range append(Names(), Name{Name: historyPrefix}) {
		root, _, _ := strings.Cut(n.Name, ".")
		if root == e.AsComprehension().IterVar() && root != nameItem { // item is a usual name of an element
			return e.ID(), fmt.Sprintf("the loop calls its element %s, which has a meaning already", root),
				"choose another name"
		}
	}
	return 0, "", ""
}

func patternRefused(pattern ast.Expr) (id int64, problem, remedy string) {
	text, ok := LiteralText(pattern)
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
		return fmt.Sprintf("the pattern compiles to %d instructions, more than %d", n, MaxRegex),
			"use smaller repetitions"
	}
	return "", ""
}

// offset is a time zone that is the same on every machine and in every year.
var offset = regexp.MustCompile(`^(UTC|[+-]?([01][0-9]|2[0-3]):[0-5][0-9])$`)

func zoneRefused(zone ast.Expr) (id int64, problem, remedy string) {
	if text, ok := LiteralText(zone); ok && offset.MatchString(text) {
		return 0, "", ""
	}
	return zone.ID(), "the time zone must be written out as an offset: what a name means is up to the machine",
		"write UTC, +02:00 or -05:30"
}

// LiteralText returns the text that an expression writes out.
func LiteralText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
