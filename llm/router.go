package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// A Router plans by the operator's routes; see the package comment for how. A request that no route
// matches goes to the model, or without one gets a question as its plan. A route that matches never
// reaches the model, not even when its plan will be refused. A Router does not change, so that any
// number of runs may share it.
type Router struct {
	routes []route
	model  Planner // nil: there is none
}

type route struct {
	re           *regexp.Regexp
	server, tool string
	args         []byte // canonical JSON
}

// NewRouter compiles the routes of a configuration, which has checked them. model may be nil.
func NewRouter(routes []policy.Route, model Planner) (*Router, error) {
	r := &Router{model: model}
	for _, spec := range routes {
		compiled, err := compileRoute(spec)
		if err != nil {
			return nil, fmt.Errorf("route %q: %w", spec.ID, err)
		}
		r.routes = append(r.routes, compiled)
	}
	return r, nil
}

func compileRoute(spec policy.Route) (route, error) {
	re, err := regexp.Compile(spec.Pattern)
	if err != nil {
		return route{}, fmt.Errorf("pattern: %w", err)
	}
	args := []byte("{}")
	if len(spec.Args) > 0 {
		if args, err = canonical.JSON(spec.Args); err != nil {
			return route{}, fmt.Errorf("args: %w", err)
		}
	}
	if args[0] != '{' {
		return route{}, errors.New("args must be a JSON object")
	}
	rt := route{re, spec.Server, spec.Tool, args}

	// Every group that the args name must exist.
	_, err = rt.fillArgs(func(name string) (string, error) {
		_, err := rt.groupOf(name)
		return name, err
	})
	return rt, err
}

// groupOf finds a group of the pattern by number or name.
func (rt *route) groupOf(name string) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 16); err == nil && int(n) <= rt.re.NumSubexp() {
		return int(n), nil
	}
	if n := rt.re.SubexpIndex(name); name != "" && n >= 0 { // unnamed groups have the name ""
		return n, nil
	}
	return 0, fmt.Errorf("${%s}: the pattern has no such group", name)
}

// fillArgs returns the args with the text of a group in the place of each ${name}, in canonical
// form. The text becomes part of a string: it is never read as JSON.
func (rt *route) fillArgs(textOf func(name string) (string, error)) ([]byte, error) {
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewReader(rt.args))
	enc := jsontext.NewEncoder(&out)

	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err != nil {
			return nil, canonical.Explain(err)
		}
		if tok.Kind() == '"' && strings.Contains(tok.String(), "${") {
			text, err := expandGroups(tok.String(), textOf)
			if canonical.IsName(dec) {
				err = errors.New("a group can only stand in a value, not in a member's name")
			}
			if err != nil {
				return nil, fmt.Errorf("args, at %s: %w", dec.StackPointer(), err)
			}
			tok = jsontext.String(text)
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, err
		}
	}
}

// expandGroups replaces each ${name} of a text; $${ stands for the two characters ${.
func expandGroups(text string, textOf func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		prefix, rest, found := strings.Cut(text, "${")
		if !found {
			return out.String() + text, nil
		}
		if escaped, ok := strings.CutSuffix(prefix, "$"); ok {
			out.WriteString(escaped + "${")
			text = rest
			continue
		}
		name, rest, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("${ is never closed; $${ stands for the two characters")
		}
		value, err := textOf(name)
		if err != nil {
			return "", err
		}
		out.WriteString(prefix + value)
		text = rest
	}
}

// errEmptyGroup means that a group took no part in a match, or matched nothing.
var errEmptyGroup = errors.New("the group is empty")

// Match returns the plan of the first route that matches, in canonical form. ok is false when none
// does.
func (r *Router) Match(request string) (plan []byte, ok bool) {
	if !utf8.ValidString(request) {
		return nil, false
	}
	for i := range r.routes {
		rt := &r.routes[i]
		match := rt.re.FindStringSubmatch(request)
		if match == nil {
			continue
		}
		args, err := rt.fillArgs(func(name string) (string, error) {
			group, err := rt.groupOf(name)
			if err != nil {
				return "", err
			}
			if match[group] == "" {
				return "", errEmptyGroup
			}
			return match[group], nil
		})
		if err != nil {
			continue
		}
		return policy.CallPlan(rt.server, rt.tool, args), true
	}
	return nil, false
}

// Plan returns the call of the first route that matches, in canonical form, or else the model's
// plan. Without a model, it returns a final_answer that says what is missing.
func (r *Router) Plan(ctx context.Context, request string, allowed []Tool) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, err
	}
	if plan, ok := r.Match(request); ok {
		return Completion{Content: plan}, nil
	}
	if r.model != nil {
		return r.model.Plan(ctx, request, allowed)
	}
	missing := "No route matches this request: say which item you mean, by its id, or what to search for."
	if !utf8.ValidString(request) {
		missing = "The request is not UTF-8 text."
	}
	return Completion{Content: policy.QuestionPlan(questionFor(missing, allowed))}, nil
}

// questionFor says what is missing, and names the tools that can be called as far as the answer of
// a plan has room for them.
func questionFor(missing string, allowed []Tool) string {
	if len(allowed) == 0 {
		return missing + " No tool can be called at present."
	}
	names := make([]string, len(allowed))
	for i, t := range allowed {
		names[i] = t.Name + " (" + t.Server + ")"
	}
	text := missing + " Tools that can be called: " + strings.ToValidUTF8(strings.Join(names, ", "), "\uFFFD") + "."
	if len(text) <= policy.MaxAnswerBytes {
		return text
	}
	return visible.Cut(text, policy.MaxAnswerBytes-len("…"), "…")
}
