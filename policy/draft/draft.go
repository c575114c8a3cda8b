// Package draft drafts policies that allow no more than what recorded calls needed. It is pure.
//
// A draft has policies that deny: tools that no call used, and arguments that are unlike those of
// every call. They belong above the policies of today, so a draft is narrower than these. [Roles] proposes labels of
// arguments, from the definitions of tools.
package draft

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// A Call is a call that was made.
type Call struct {
	Server, Tool string
	Args         []byte // a JSON object
}

// Limits of what is learned.
const (
	maxConstants = 8  // texts that an argument is compared with
	perConstant  = 3  // calls for each of them
	minCalls     = 5  // calls before a form of texts or a range of numbers is learned
	maxLength    = 80 // bytes of a text that is compared with
	maxNumber    = 1e15
)

// Policies returns the policies of a draft for servers with these allowed tools.
func Policies(allowed []policy.Allowance, calls []Call) (drafted []rules.Policy) {
	used := map[string]map[string][]map[string]any{} // the arguments of calls, by server and tool
	for _, a := range allowed {
		used[a.Server] = map[string][]map[string]any{}
	}
	for _, c := range calls {
		var args map[string]any
		if used[c.Server] != nil && json.Unmarshal(c.Args, &args) == nil {
			used[c.Server][c.Tool] = append(used[c.Server][c.Tool], args)
		}
	}

	for _, server := range slices.Sorted(maps.Keys(used)) {
		tools := slices.Sorted(maps.Keys(used[server]))
		one := rules.Policy{Match: rules.Match{Server: server}, Effect: rules.Deny}
		if len(tools) > 0 {
			one.When = "!(tool in " + list(tools) + ")"
		}
		drafted = append(drafted, one)
		for _, tool := range tools {
			drafted = append(drafted, argumentPolicies(server, tool, used[server][tool])...)
		}
	}
	for i := range drafted {
		drafted[i].ID = fmt.Sprintf("draft-%d", i+1)
	}
	return drafted
}

// argumentPolicies returns the policies about the arguments of a tool.
func argumentPolicies(server, tool string, calls []map[string]any) (drafted []rules.Policy) {
	values := map[string][]any{}
	for _, args := range calls {
		for name, v := range args { // in no order: the values of each argument are in that of the calls
			values[name] = append(values[name], v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		place := fmt.Sprintf("args[%s]", strconv.Quote(name))
		test := narrowest(place, values[name])
		if test == "" {
			continue
		}
		if len(values[name]) < len(calls) {
			test = fmt.Sprintf("!(%s in args) || %s", strconv.Quote(name), test)
		}
		drafted = append(drafted, rules.Policy{
			Match:  rules.Match{Server: server, Tool: tool},
			When:   "!(" + test + ")",
			Effect: rules.Deny,
		})
	}
	return drafted
}

// narrowest returns the narrowest condition of a few forms that is true for all values; empty if
// none is.
func narrowest(place string, values []any) string {
	texts, areTexts := allOf[string](values)
	numbers, areNumbers := allOf[float64](values)
	bools, areBools := allOf[bool](values)
	lists, areLists := allOf[[]any](values)
	switch {
	case areTexts:
		return narrowestText(place, texts)
	case areNumbers && len(numbers) >= minCalls && slices.Max(numbers) < maxNumber && slices.Min(numbers) > -maxNumber:
		low, high := round(slices.Min(numbers), false), round(slices.Max(numbers), true)
		return fmt.Sprintf("%[1]s >= %[2]s && %[1]s <= %[3]s", place, number(low), number(high))
	case areBools && len(bools) >= minCalls && !slices.Contains(bools, !bools[0]):
		return fmt.Sprintf("%s == %t", place, bools[0])
	case areLists:
		if test := narrowest("x", slices.Concat(lists...)); test != "" {
			return fmt.Sprintf("%s.all(x, %s)", place, test)
		}
	}
	return ""
}

// allOf returns values of one type; false if there is none, or one of another type.
func allOf[T any](values []any) (all []T, ok bool) {
	for _, v := range values {
		one, ok := v.(T)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return all, len(all) > 0
}

// separators are the characters after which a common prefix can end, and with which a common suffix
// can begin.
const separators = "/:@._- "

// forms are classes of texts, the narrowest first.
var forms = []string{`^[0-9]+$`, `^[a-z]+$`, `^[A-Za-z]+$`, `^[A-Za-z0-9_-]+$`, `^[A-Za-z0-9_.@+-]+$`}

func narrowestText(place string, texts []string) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(texts)))
	isLong := func(text string) bool { return len(text) > maxLength }
	if len(distinct) <= maxConstants && len(texts) >= perConstant*len(distinct) && !slices.ContainsFunc(distinct, isLong) {
		return place + " in " + list(distinct)
	}
	if len(texts) < minCalls {
		return ""
	}

	// All texts begin, or end, as the first and the last of them have in common.
	common := func(texts []string, at func(text string, i int) byte) (n int) {
		first := slices.MinFunc(texts, func(a, b string) int { return len(a) - len(b) })
		for n < len(first) && !slices.ContainsFunc(texts, func(t string) bool { return at(t, n) != at(first, n) }) {
			n++
		}
		return n
	}
	prefix := texts[0][:common(texts, func(text string, i int) byte { return text[i] })]
	prefix = prefix[:strings.LastIndexAny(prefix, separators)+1]
	if len(prefix) >= 3 && !isLong(prefix) {
		return fmt.Sprintf("%s.startsWith(%s)", place, strconv.Quote(prefix))
	}
	suffix := texts[0][len(texts[0])-common(texts, func(text string, i int) byte { return text[len(text)-1-i] }):]
	suffix = suffix[max(strings.IndexAny(suffix, separators), 0):]
	if len(suffix) >= 4 && strings.ContainsAny(suffix[:1], separators) && !isLong(suffix) {
		return fmt.Sprintf("%s.endsWith(%s)", place, strconv.Quote(suffix))
	}
	for _, form := range forms {
		differs := func(text string) bool { return !regexp.MustCompile(form).MatchString(text) }
		if !slices.ContainsFunc(texts, differs) {
			return fmt.Sprintf("%s.matches(%s)", place, strconv.Quote(form))
		}
	}
	return ""
}

// round rounds a number to 1, 2 or 5 times a power of ten that is not below it, or not above it.
func round(x float64, up bool) float64 {
	if x < 0 {
		return -round(-x, !up)
	}
	if x == 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	steps := []float64{power, 2 * power, 5 * power, 10 * power}
	i := slices.IndexFunc(steps, func(step float64) bool { return step >= x })
	switch {
	case up && i >= 0:
		return steps[i]
	case !up && i > 0 && steps[i] > x:
		return steps[i-1]
	}
	return x // exactly a step, or as near as doubles can tell
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
