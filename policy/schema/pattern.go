package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A pattern is a compiled RE2 expression that knows its size: matching costs at most size steps a
// byte.
type pattern struct {
	*regexp.Regexp
	steps int
}

// patterns compiles the regular expressions of one schema and bounds them one by one and together.
type patterns struct {
	lim Limits
	// nil once the schema is compiled: what follows are documents' strings (format: regex)
	known map[string]*pattern
	total int
}

func (p *patterns) compile(expr string) (jsonschema.Regexp, error) {
	if re, ok := p.known[expr]; ok {
		return re, nil
	}
	if len(expr) > p.lim.PatternBytes {
		return nil, &patternError{fmt.Sprintf("has %d bytes, at most %d are allowed", len(expr), p.lim.PatternBytes)}
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, &patternError{"is not an RE2 expression: " + err.Error()}
	}

	// The size is bounded before the expression is compiled: repetitions multiply.
	steps := stepsOf(tree, p.lim.PatternSteps)
	if steps > p.lim.PatternSteps {
		return nil, &patternError{fmt.Sprintf("needs more than %d steps a byte", p.lim.PatternSteps)}
	}

	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, &patternError{"is not an RE2 expression: " + err.Error()}
	}

	compiled := &pattern{re, steps}
	if p.known == nil {
		return compiled, nil
	}
	if p.total += steps; p.total > p.lim.AllPatterns {
		return nil, fmt.Errorf("%w %d steps", errAllPatterns, p.lim.AllPatterns)
	}

	p.known[expr] = compiled
	return compiled, nil
}

// stepsOf bounds the number of instructions that re compiles to, without compiling it. It stops
// counting soon after limit: repetitions multiply.
func stepsOf(re *syntax.Regexp, limit int) int {
	steps := 1
	if re.Op == syntax.OpLiteral {
		steps = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if steps += stepsOf(sub, limit); steps > limit {
			return limit + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		steps *= max(re.Min, re.Max) + 1
	}
	return min(steps, limit+1)
}

// errAllPatterns names no pattern, because which one exceeds the limit depends on the order of a
// map.
var errAllPatterns = errors.New("all patterns together need more than")

type patternError struct{ reason string }

func (e *patternError) Error() string { return e.reason }
