package ctrl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"pgfsm/policy/visible"
)

// A place says which expression of a bundle is read, and so what it may name.
type place uint8

const (
	inPolicy    place = iota // deny and require_approval_if
	inVar                    // vars
	inRule                   // score_expr
	inThreshold              // set_mode_by_score
)

// A scope is what an expression may name beside what its place gives it.
type scope struct {
	place   place
	vars    []string // declared so far, and translated
	refused []string // declared so far, and not translated
	later   []string // declared further down
}

// callNames are the names that stand for the call.
var callNames = []string{"server", "tool", "env"}

// functions are those that ctrl knows, and here the CEL functions of those that take one number.
var functions = map[string]string{
	"max": "math.greatest", "min": "math.least", "abs": "math.abs", "round": "math.round", "floor": "math.floor",
	"ceil": "math.ceil", "sqrt": "math.sqrt", "log": "",
}

// name translates a name that stands alone.
func (t *translator) name(name string) (term, error) {
	switch {
	case name == "True" || name == "False":
		return term{src: strings.ToLower(name), prec: atom, kind: isBoolean}, nil
	case name == "None":
		return term{src: "null", prec: atom, kind: isNone}, nil
	case t.isScore(&syntax.Ident{Name: name}):
		return t.score(), nil
	case t.place == inPolicy && name == "risk_mode":
		return term{src: "risk.mode", prec: atom, kind: isString}, nil
	case name == "mode" && t.place != inPolicy:
		return term{}, fmt.Errorf("mode, what it is so far, cannot be named here")
	case t.place == inThreshold:
		return term{}, fmt.Errorf("only score has a meaning here, not %q", name)
	case slices.Contains(t.refused, name):
		return term{}, fmt.Errorf("the variable %q was refused", name)
	case slices.Contains(t.vars, name):
		return term{src: "vars." + name, prec: atom, kind: isDouble}, nil
	case slices.Contains(callNames, name):
		t.callName(name)
		return term{src: name, prec: atom, kind: isString}, nil
	case t.place == inPolicy:
		return term{}, fmt.Errorf("ctrl knows no name %q here, only risk.score and risk.mode", name)
	case slices.Contains(t.later, name):
		return term{}, fmt.Errorf("the variable %q is declared further down", name)
	case name == "score":
		return term{}, fmt.Errorf("variables are computed before there is a score")
	case name == "args" || name == "risk" || functions[name] != "" || strings.HasPrefix(name, "__"):
		return term{}, fmt.Errorf("%q cannot stand alone", name)
	}
	t.argument(name)
	return term{src: reference(name), prec: atom, kind: isDynamic}, nil
}

// callName notes that ctrl lets an argument take the name of the call's server, tool or environment, or does not know
// the name at all.
func (t *translator) callName(name string) {
	if t.place == inPolicy {
		t.failsThere("the name " + name)
		return
	}
	t.note(ShadowedName, fmt.Sprintf("in ctrl, an argument called %s takes the place of %s", name, name),
		fmt.Sprintf("%s is the call's, whatever its arguments are called", name))
}

func (t *translator) argument(name string) {
	t.note(WrongType, fmt.Sprintf("the argument %q may be missing or of another type", name),
		"where its value is used the expression then fails, which counts as more risk; ask "+presence(name)+
			" if it may be missing")
	if t.place == inVar {
		t.note(FailingVar, "in ctrl, a call without the argument, or with text in its place, makes this variable 0",
			"an expression that fails is never 0: whatever uses the variable fails, too")
	}
}

// isScore reports whether e is the score so far.
func (t *translator) isScore(e syntax.Expr) bool {
	switch v := bare(e).(type) {
	case *syntax.Ident:
		return v.Name == "risk_score" && t.place == inPolicy ||
			v.Name == "score" && (t.place == inRule || t.place == inThreshold)
	case *syntax.DotExpr:
		x, ok := v.X.(*syntax.Ident)
		return ok && t.place == inPolicy && x.Name == "risk" && v.Name.Name == "score"
	}
	return false
}

// score is the score as ctrl has it, which ends at 100. A rule may compute beyond.
func (t *translator) score() term {
	switch t.place {
	case inPolicy:
		return term{src: "math.least(risk.score, 100)", prec: atom, kind: isInteger}
	case inThreshold:
		return term{src: "math.least(score, 100.0)", prec: atom, kind: isDouble}
	}
	return term{src: "score", prec: atom, kind: isDouble}
}

func (t *translator) rawScore() term {
	if t.place == inPolicy {
		return term{src: "risk.score", prec: atom, kind: isInteger}
	}
	return term{src: "score", prec: atom, kind: isDouble}
}

var (
	simpleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// celWords cannot be names in CEL.
	celWords = []string{"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import",
		"in", "let",
		"loop", "package", "namespace", "null", "return", "true", "var", "void", "while"}
)

func isSimple(name string) bool {
	return simpleName.MatchString(name) && !slices.Contains(celWords, name)
}

// reference names an argument.
func reference(name string) string {
	if isSimple(name) {
		return "args." + name
	}
	return "args[" + quote(name) + "]"
}

// presence asks whether there is an argument.
func presence(name string) string {
	if isSimple(name) {
		return "has(args." + name + ")"
	}
	return quote(name) + " in args"
}

// quote writes a text as CEL does, with what does not show escaped: our files hold no such characters.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case visible.Text(string(r)) == string(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
