package llm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// MaxPatternBytes bounds one route's pattern.
const MaxPatternBytes = 4096

// A Router plans by the operator's routes; see the package comment for how. The zero Router matches nothing. A Router
// does not change, so that any number of runs may share it.
type Router struct{ routes []route }

type route struct {
	re           *regexp.Regexp
	server, tool string
	args         *template
}

// NewRouter compiles the routes, once. Every mistake is reported, each with the route's place in the list, from 0, and
// its id: a missing or repeated id, a missing server or tool, a pattern that is empty, too long or not RE2, args that
// are not one strict JSON object or use a group that the pattern does not have.
func NewRouter(routes []policy.Route) (*Router, error) {
	if len(routes) > policy.MaxRoutes {
		return nil, fmt.Errorf("there are %d routes; at most %d are allowed", len(routes), policy.MaxRoutes)
	}
	r := &Router{routes: make([]route, 0, len(routes))}
	first := make(map[string]int, len(routes))
	var mistakes []error
	for i, spec := range routes {
		compiled, err := compileRoute(spec)
		if earlier, taken := first[spec.ID]; taken && err == nil {
			err = fmt.Errorf("route %d has the same id", earlier)
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("route %d (%q): %w", i, spec.ID, err))
			continue
		}
		first[spec.ID] = i
		r.routes = append(r.routes, compiled)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return r, nil
}

func compileRoute(spec policy.Route) (route, error) {
	switch {
	case spec.ID == "":
		return route{}, errors.New("the id is empty")
	case !utf8.ValidString(spec.Server) || spec.Server == "":
		return route{}, errors.New("the server is empty or not UTF-8")
	case !utf8.ValidString(spec.Tool) || spec.Tool == "":
		return route{}, errors.New("the tool is empty or not UTF-8")
	case spec.Pattern == "":
		return route{}, errors.New("the pattern is empty; (?s).* says that every request matches")
	case len(spec.Pattern) > MaxPatternBytes:
		return route{}, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(spec.Pattern), MaxPatternBytes)
	}
	re, err := regexp.Compile(spec.Pattern)
	if err != nil {
		return route{}, fmt.Errorf("pattern: %w", err)
	}
	args, err := compileTemplate(spec.Args, re)
	if err != nil {
		return route{}, err
	}
	return route{re, spec.Server, spec.Tool, args}, nil
}

// Match returns the plan of the first route that matches, in canonical form. ok is false when none does.
func (r *Router) Match(request string) (plan []byte, ok bool) {
	if r == nil || !utf8.ValidString(request) {
		return nil, false
	}
	for i := range r.routes {
		rt := &r.routes[i]
		match := rt.re.FindStringSubmatchIndex(request)
		if match == nil {
			continue
		}
		if args, ok := rt.args.fill(request, match); ok {
			return policy.CallPlan(rt.server, rt.tool, args), true
		}
	}
	return nil, false
}

// Plan returns one strict JSON plan, in canonical form: the call of the first route that matches, else a final_answer
// that says what is missing and names the tools of allowed, in their order, as far as they fit.
func (r *Router) Plan(request string, allowed []Tool) []byte {
	if plan, ok := r.Match(request); ok {
		return plan
	}
	if !utf8.ValidString(request) {
		return ask("The request is not UTF-8 text.", allowed)
	}
	return ask("No route matches this request: say which item you mean, by its id, or what to search for.", allowed)
}

// ask writes the plan that asks for what is missing.
func ask(missing string, allowed []Tool) []byte {
	const none, some, more = " No tool can be called at present.", " Tools that can be called: ", " and 999999 more."
	answer := missing + none
	if len(allowed) > 0 {
		answer = missing + some + toolNames(allowed, policy.MaxAnswerBytes-len(missing+some+more)) + "."
	}
	return policy.QuestionPlan(cut(answer, policy.MaxAnswerBytes))
}

// toolNames lists the names while they fit into room bytes, and counts the others.
func toolNames(tools []Tool, room int) string {
	var list strings.Builder
	for i, t := range tools {
		name := strings.ToValidUTF8(t.Name+" ("+t.Server+")", "\uFFFD")
		if i > 0 && list.Len()+len(name)+len(", ") > room {
			fmt.Fprintf(&list, " and %d more", len(tools)-i)
			break
		}
		if i > 0 {
			list.WriteString(", ")
		}
		list.WriteString(cut(name, room))
	}
	return list.String()
}

// cut truncates s to at most limit bytes, at a rune boundary, with an ellipsis.
func cut(s string, limit int) string {
	const gone = "…"
	if len(s) <= limit {
		return s
	}
	return visible.Cut(s, limit-len(gone), gone)
}
