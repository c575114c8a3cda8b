package condition

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"cel.dev/cel-go/common/cost"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
)

// Limits of an expression and of what it judges.
const (
	MaxSource    = 4096    // bytes of an expression
	MaxDepth     = 50      // levels of an expression, as CEL's parser counts them
	MaxArgs      = 1 << 20 // bytes of arguments that a condition judges: as many as a plan may have
	MaxArgsDepth = 1000    // levels of arguments: as many as in a plan
	// Bytes of server, tool, env, actor.id and risk.mode; a use of a longer one is an error.
	MaxName    = 1024
	MaxVarName = 64 // bytes of a variable's or a claim's name
	MaxClaims  = 64 // claims of a configuration
)

// Versions of CEL's libraries and of its cost model. They are fixed, so that an upgrade of cel-go
// changes no verdict.
const (
	StringsVersion   = 5
	MathVersion      = 3
	CostModelVersion = 1
)

// An Env holds the names that an expression may use; see [Names]. It is safe for concurrent use.
type Env struct {
	cel     *cel.Env
	options []cel.EnvOption // the options without the type of args
	tracker *cost.Tracker   // a tracker at zero
	claims  []string        // the configured ones
	where   kinds
}

// PolicyEnv returns the names for conditions of policies, with the given claims as
// `actor.claims.NAME`.
func PolicyEnv(claims ...string) (*Env, error) {
	if len(claims) == 0 {
		return policyEnv()
	}
	return newEnv(inPolicy, nil, claims)
}

// policyEnv is made once: that takes longer than to compile a few policies.
var policyEnv = sync.OnceValues(func() (*Env, error) { return newEnv(inPolicy, nil, nil) })

// RiskEnv returns the names for expressions of risk rules and of variables: `score`, the given
// variables as `vars.NAME`, and the given claims. It has no risk.*, because these expressions
// produce it.
func RiskEnv(vars []string, claims ...string) (*Env, error) { return newEnv(inRisk, vars, claims) }

// ScoreEnv returns the names for the thresholds of set_mode_by_score: `score`.
func ScoreEnv() (*Env, error) { return newEnv(inScore, nil, nil) }

// ItemEnv returns the names for conditions of trusted_if: `item`, the actor and the given claims.
func ItemEnv(claims ...string) (*Env, error) { return newEnv(inItem, nil, claims) }

var varName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckName returns why a variable or a claim cannot have a name.
func CheckName(name string) error {
	if len(name) > MaxVarName || !varName.MatchString(name) || reserved[name] {
		return fmt.Errorf("want letters, digits and _, at most %d, and no word of CEL", MaxVarName)
	}
	return nil
}

func newEnv(where kinds, vars, claims []string) (*Env, error) {
	options := []cel.EnvOption{
		cel.ClearMacros(), cel.Macros(cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.MapMacro,
			cel.MapFilterMacro, cel.FilterMacro),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableErrorOnBadPresenceTest(true),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(MaxDepth),
		cel.EnableHiddenAccumulatorName(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(ext.StringsVersion(StringsVersion)),
		ext.Math(ext.MathVersion(MathVersion)),
		cel.CostModelVersion(CostModelVersion),
	}

	if where&(inPolicy|inRisk) != 0 {
		options = append(append(options, historyFunctions()...), originFunctions()...)
	}

	for _, n := range names {
		if n.where&where != 0 && n.Name != nameArgs {
			options = append(options, cel.Variable(n.Name, n.celType))
		}
	}

	if len(claims) > MaxClaims {
		return nil, fmt.Errorf("%d claims, more than %d", len(claims), MaxClaims)
	}

	for _, group := range []struct {
		what, prefix string
		names        []string
		celType      *cel.Type
	}{{"variable", varPrefix, vars, cel.DoubleType}, {"claim", ClaimPrefix, claims, cel.StringType}} {
		// Variables and claims have names from the configuration, which are checked here.
		for i, name := range group.names {
			if err := CheckName(name); err != nil {
				return nil, fmt.Errorf("%q cannot be the name of a %s: %w", name, group.what, err)
			}
			if slices.Contains(group.names[:i], name) {
				return nil, fmt.Errorf("the %s %q stands twice", group.what, name)
			}
			options = append(options, cel.Variable(group.prefix+name, group.celType))
		}
	}

	// The options without args are kept for Typed, which gives args another type.
	withArgs := options
	if where&(inPolicy|inRisk) != 0 {
		withArgs = append(slices.Clone(options), cel.Variable(nameArgs, cel.MapType(cel.StringType, cel.DynType)))
	}

	env, err := cel.NewEnv(withArgs...)
	if err != nil {
		return nil, err
	}

	e := &Env{cel: env, options: options, claims: claims, where: where}
	e.tracker, err = e.newTracker()

	return e, err
}

// newTracker returns a tracker at zero. cel-go makes the one of an environment's cost models only
// when a program runs.
func (e *Env) newTracker() (*cost.Tracker, error) {
	checked, issues := e.cel.Compile("true")
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := e.planProgram(checked.NativeRep())
	if err != nil {
		return nil, err
	}
	frame, err := interpreter.NewExecutionFrame(cel.NoVars())
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	_, _, err = program.Eval(frame)
	return frame.CostTracker(), err
}

// planProgram makes a program of a checked expression.
func (e *Env) planProgram(a *ast.AST, options ...cel.ProgramOption) (cel.Program, error) {
	return e.cel.PlanProgram(a, append(slices.Clone(options), cel.EvalOptions(cel.OptOptimize),
		cel.CostTracking(estimator{}),
		cel.CustomDecoratorV2(replaceCall))...)
}

// reserved are the words of CEL that a name cannot be, by its grammar.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "package": true,
	"namespace": true, "null": true, "return": true, "true": true, "var": true, "void": true, "while": true,
}
