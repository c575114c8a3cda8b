package condition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"pgfsm/internal/visible"
)

// Limits of queries about earlier calls.
const (
	MinWindow int64 = 1 // seconds
	// seconds: the longest month. Every call in it is read, in one transaction.
	MaxWindow  int64 = 31 * 24 * 60 * 60
	MaxQueries       = 16  // different queries for one call: each reads the ledger
	MaxPath          = 256 // bytes of the place of an argument: names with dots between them
)

// What a query computes.
const (
	QueryCount    = "count"     // the number of calls of the same tool
	QueryCountAll = "count_all" // the number of calls of any tool
	QuerySum      = "sum"       // the sum of an argument over the calls of the same tool
)

// Whose calls a query counts.
const (
	ScopeActor = "actor" // calls of the same actor
	ScopeTask  = "task"  // calls of the same task
)

// A Query asks about earlier calls, as in history.count("actor", "1h").
type Query struct {
	Of     string `json:"of"`     // QueryCount, QueryCountAll or QuerySum
	Path   string `json:"path"`   // for QuerySum: the argument, names with dots between them
	Scope  string `json:"scope"`  // ScopeActor or ScopeTask
	Window int64  `json:"window"` // seconds back from the request's time, both ends included
}

// An Answer is the answer to a query. Without one, a use of the query is an error.
type Answer struct {
	Failed string `json:"failed"` // the reason why there is no value; empty if there is one
	Of     string `json:"of"`
	Path   string `json:"path"`
	Scope  string `json:"scope"`
	Value  string `json:"value"` // a number in decimal, exact
	Window int64  `json:"window"`
}

// Query returns the query that was answered.
func (a *Answer) Query() Query { return Query{a.Of, a.Path, a.Scope, a.Window} }

// Answer returns an answer to the query.
func (q Query) Answer(value string) Answer {
	return Answer{Of: q.Of, Path: q.Path, Scope: q.Scope, Window: q.Window, Value: value}
}

// Fail returns an answer without a value.
func (q Query) Fail(why string) Answer {
	a := q.Answer("")
	a.Failed = why
	return a
}

// String returns the query as it is written in an expression.
func (q Query) String() string {
	path := ""
	if q.Of == QuerySum {
		path = fmt.Sprintf(", %q", q.Path)
	}
	return fmt.Sprintf("%s%s(%q, %q%s)", historyPrefix, q.Of, q.Scope, windowText(q.Window), path)
}

// Check returns the problem of a query; nil if there is none.
func (q Query) Check() error {
	switch {
	case q.Of != QueryCount && q.Of != QueryCountAll && q.Of != QuerySum:
		return fmt.Errorf("there is no history.%s; write count, count_all or sum", clipNumber(q.Of))
	case q.Scope != ScopeActor && q.Scope != ScopeTask:
		return fmt.Errorf("there is no scope %q; write actor or task", clipNumber(q.Scope))
	case q.Window < MinWindow || q.Window > MaxWindow:
		return fmt.Errorf("a window has 1s to %s", windowText(MaxWindow))
	case q.Of != QuerySum:
		if q.Path != "" {
			return fmt.Errorf("%s asks about no argument", q.Of)
		}
		return nil
	case len(q.Path) > MaxPath || slices.Contains(strings.Split(q.Path, "."), ""):
		return fmt.Errorf("an argument is written with dots, as in order.amount, in 1 to %d bytes", MaxPath)
	}
	return nil
}

// Distinct orders queries, so that they are recorded in one order, and removes duplicates.
func Distinct(queries []Query) []Query {
	slices.SortFunc(queries, func(a, b Query) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Window, b.Window),
			cmp.Compare(a.Path, b.Path))
	})
	return slices.Compact(queries)
}

// ParseWindow reads the window of a query and returns it in seconds: a number and s, m, h or d.
func ParseWindow(text string) (seconds int64, err error) {
	units := map[byte]int64{'s': 1, 'm': 60, 'h': 60 * 60, 'd': 24 * 60 * 60}
	refused := fmt.Errorf("%q is no window; write 1s to %s, as in 30m, 1h or 7d", clipNumber(text),
		windowText(MaxWindow))
	if text == "" || units[text[len(text)-1]] == 0 {
		return 0, refused
	}
	// The number has no sign and no leading zero, so that a window is written in one way only.
	digits := text[:len(text)-1]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] < '1' || digits[0] > '9' || n > MaxWindow {
		return 0, refused
	}
	if seconds = n * units[text[len(text)-1]]; seconds > MaxWindow {
		return 0, refused
	}
	return seconds, nil
}

// windowText writes a window in its largest unit.
func windowText(seconds int64) string {
	for _, u := range []struct {
		in   int64
		name string
	}{{24 * 60 * 60, "d"}, {60 * 60, "h"}, {60, "m"}} {
		if seconds >= u.in && seconds%u.in == 0 {
			return strconv.FormatInt(seconds/u.in, 10) + u.name
		}
	}
	return strconv.FormatInt(seconds, 10) + "s"
}

// historyPrefix is the prefix of the history functions.
const historyPrefix = "history."

// historyFunctions declares them. The [Subject] has their values; see [replaceHistoryCall].
func historyFunctions() []cel.EnvOption {
	two := []*cel.Type{cel.StringType, cel.StringType}
	three := append(slices.Clone(two), cel.StringType)
	return []cel.EnvOption{
		cel.Function(historyPrefix+QueryCount, cel.Overload("history_count_string_string", two, cel.IntType)),
		cel.Function(historyPrefix+QueryCountAll, cel.Overload("history_count_all_string_string", two, cel.IntType)),
		cel.Function(historyPrefix+QuerySum, cel.Overload("history_sum_string_string_string", three, cel.DoubleType)),
	}
}

// queryOf makes a query of a call of a history function. If an argument is wrong, it returns which
// one, and the problem.
func queryOf(call ast.CallExpr) (q Query, id int64, problem, remedy string) {
	var texts [3]string
	args := call.Args()
	for i, arg := range args {
		var ok bool
		if texts[i], ok = LiteralText(arg); !ok {
			return q, arg.ID(), "what history is asked must be written out", `as in history.count("actor", "1h")`
		}
	}
	q = Query{Of: strings.TrimPrefix(call.FunctionName(), historyPrefix), Scope: texts[0], Path: texts[2]}
	var err error
	if q.Window, err = ParseWindow(texts[1]); err != nil {
		return q, args[1].ID(), err.Error(), ""
	}
	if err := q.Check(); err != nil {
		// The fault is in the scope, or else in the last argument: the window was read already.
		faulty := 0
		if q.Scope == ScopeActor || q.Scope == ScopeTask {
			faulty = len(args) - 1
		}
		return q, args[faulty].ID(), err.Error(), ""
	}
	return q, 0, "", ""
}

// queriesOf returns the queries of an expression, in order and each once.
func queriesOf(a *ast.AST) (queries []Query) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.KindMatcher(ast.CallKind)) {
		if call := e.AsCall(); strings.HasPrefix(call.FunctionName(), historyPrefix) {
			q, _, _, _ := queryOf(call)
			queries = append(queries, q)
		}
	}
	return Distinct(queries)
}

// Queries returns the queries of the expression, in order and each once. A nil program has none.
func (p *Program) Queries() []Query {
	if p == nil {
		return nil
	}
	return p.queries
}

// replaceHistoryCall replaces a call of a history function by the value of its query in the
// [Subject].
func replaceHistoryCall(c interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	var texts [3]string
	for i, arg := range c.Args() {
		if constant, ok := arg.(interpreter.InterpretableConst); ok && i < len(texts) {
			text, _ := constant.Value().(types.String)
			texts[i] = string(text)
		}
	}
	window, err := ParseWindow(texts[1])
	return queryCall{c, Query{strings.TrimPrefix(c.Function(), historyPrefix), texts[2], texts[0], window}.String()},
		err
}

// A queryCall is a call of a history function.
type queryCall struct {
	interpreter.InterpretableCall
	name string // the form that [Query.String] writes
}

// Eval implements [interpreter.InterpretableV2].
func (q queryCall) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, q.Exec)
}

// Exec implements [interpreter.InterpretableV2]. Without history, the value is unknown.
func (q queryCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v, ok := frame.ResolveName(q.name)
	if value, is := v.(ref.Val); ok && is {
		return value
	}
	return types.NewUnknown(q.ID(), nil)
}

// answerValue returns the value of a query, as [Query.String] writes it.
func (s *Subject) answerValue(name string) ref.Val {
	if !s.answers {
		s.answers = true
		for i := range s.input.History {
			a := &s.input.History[i]
			s.values[a.Query().String()] = a.celValue()
		}
	}
	if v := s.values[name]; v != nil {
		return v
	}
	return types.NewErr("%s is not known", name)
}

// celValue is the value of an answer in an expression.
func (a *Answer) celValue() ref.Val {
	if a.Failed != "" {
		return types.NewErr("%s: %s", a.Query(), a.Failed)
	}
	if a.Of != QuerySum {
		n, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil || n < 0 {
			return types.NewErr("%s: %q is no count", a.Query(), clipNumber(a.Value))
		}
		return types.Int(n)
	}
	f, err := strconv.ParseFloat(a.Value, 64)
	if err != nil || !isDouble(a.Value, f) {
		return types.NewErr("%s: %q is no sum that a double holds with all its digits", a.Query(), clipNumber(a.Value))
	}
	return types.Double(f)
}

// ParseQuery reads a single query in the form of an expression, such as history.count("actor",
// "1h").
func ParseQuery(text string) (Query, error) {
	env, err := PolicyEnv()
	if err != nil {
		return Query{}, err
	}
	p, err := env.Number(text)
	if err != nil {
		return Query{}, err
	}
	if !p.isQuery {
		return Query{}, errors.New(`it is no question about calls before; write it as the condition does, as in history.count("actor", "1h")`)
	}
	return p.queries[0], nil
}

// isQuery reports whether an expression is one query and nothing else.
func isQuery(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && strings.HasPrefix(e.AsCall().FunctionName(), historyPrefix)
}

// ParseAnswer makes an answer from a query and a decimal number, for explain and tests of policies.
func ParseAnswer(query, value string) (Answer, error) {
	q, err := ParseQuery(query)
	if err != nil {
		return Answer{}, err
	}
	a := q.Answer(value)
	if e, failed := a.celValue().(*types.Err); failed {
		return Answer{}, errors.New(visible.Clip(e.Error(), maxMessage))
	}
	return a, nil
}
