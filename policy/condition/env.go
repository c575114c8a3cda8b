package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Limits of an expression and of what it judges.
const (
	MaxSource    = 4096    // bytes of an expression
	MaxDepth     = 50      // how deep an expression nests, as CEL's parser counts
	MaxArgs      = 1 << 20 // bytes of arguments that a condition judges: as many as a plan may have
	MaxArgsDepth = 1000    // how deep arguments nest: as deep as a plan may
	MaxVars      = 1000    // variables of a risk model
	MaxVarName   = 64      // bytes of a variable's name
)

// An Env is what an expression may name; see [Names]. It is safe for concurrent use.
type Env struct{ cel *cel.Env }

// PolicyEnv is what the conditions of policies may name.
func PolicyEnv() (*Env, error) { return newEnv(inPolicy, nil) }

// RiskEnv is what expressions of risk rules and of variables may name: no risk.*, which is what they make, but `score`
// and the given variables as `vars.NAME`.
func RiskEnv(vars []string) (*Env, error) { return newEnv(inRisk, vars) }

// ScoreEnv is what the thresholds of set_mode_by_score may name: `score`.
func ScoreEnv() (*Env, error) { return newEnv(inScore, nil) }

var varName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func newEnv(where kinds, vars []string) (*Env, error) {
	options := []cel.EnvOption{
		cel.ClearMacros(), cel.Macros(cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.MapMacro,
			cel.MapFilterMacro, cel.FilterMacro),
		ext.Math(),
		cel.Function("lowerAscii", cel.MemberOverload("string_lower_ascii", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(lowerASCII))),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableErrorOnBadPresenceTest(true),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(MaxDepth),
		cel.EnableHiddenAccumulatorName(true),
		cel.DefaultUTCTimeZone(true),
	}
	if where&(inPolicy|inRisk) != 0 {
		options = append(options, historyFunctions()...)
	}
	for _, n := range names {
		if n.where&where != 0 {
			options = append(options, cel.Variable(n.Name, n.celType))
		}
	}
	if len(vars) > MaxVars {
		return nil, fmt.Errorf("%d variables, more than %d", len(vars), MaxVars)
	}
	for i, v := range vars {
		if len(v) > MaxVarName || !varName.MatchString(v) || reserved[v] {
			return nil, fmt.Errorf(
				"%q cannot be the name of a variable: want letters, digits and _, at most %d, and no word of CEL", v, MaxVarName)
		}
		if slices.Contains(vars[:i], v) {
			return nil, fmt.Errorf("the variable %q stands twice", v)
		}
		options = append(options, cel.Variable(varPrefix+v, cel.DoubleType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	return &Env{cel: env}, nil
}

// lowerASCII is `text.lowerAscii()`: A to Z become a to z, everything else stays. (CEL's string library has it, beside
// much that can make a text larger.)
func lowerASCII(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	return types.String(strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, string(s)))
}

// reserved are the words of CEL that a name cannot be, by its grammar.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "package": true,
	"namespace": true, "null": true, "return": true, "true": true, "var": true, "void": true, "while": true,
}
