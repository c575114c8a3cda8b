package ctrl

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/risk"
	"pgfsm/policy/visible"
)

// ctrlOps are the ops of predicates in ctrl. Others it passes over.
var ctrlOps = []string{risk.OpEq, risk.OpNe, risk.OpGt, risk.OpGte, risk.OpLt, risk.OpLte, risk.OpContains, risk.OpIn}

// predicates reads when.args. everyTool: the rule is for tools that may not have the arguments at all.
func (r *riskReader) predicates(n *node, id string, everyTool bool) (out []risk.Predicate) {
	if n == nil || n.kind == isNull || !r.is(n, isMap) {
		return nil
	}
	for _, m := range n.members {
		r.only(m.value, ctrlOps...)
		if len(m.value.members) == 0 {
			r.fault(m.value, "a predicate has an op: %s", strings.Join(ctrlOps, ", "))
			continue
		}
		path := r.shown(m.value, m.key)
		if strings.HasPrefix(path, "/") { // or it would be a pointer
			path = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
		}
		var here []risk.Predicate
		for _, op := range m.value.members {
			here = append(here, r.predicate(path, id, "args."+m.key, op)...)
		}
		out = append(out, r.present(here, path, id, "args."+m.key, m.value, everyTool)...)
	}
	return out
}

// present says what an argument that is missing counts as.
func (r *riskReader) present(here []risk.Predicate, path, id, key string, at *node, everyTool bool) []risk.Predicate {
	for _, p := range here {
		if p.Op == risk.OpExists {
			return here
		}
	}
	problem := fmt.Sprintf("in ctrl, a call gets past it whose argument %q is missing, null or of another type", path)
	if !everyTool {
		r.note(at, id, key, MissingArgument, problem,
			"that is unknown and counts as more risk; put exists: true beside it if a missing argument does not matter")
		return here
	}
	r.note(at, id, key, MissingArgument, problem,
		"null and another type are unknown and count as more risk; exists: true lets calls go that do not have the argument")
	return append([]risk.Predicate{{Path: path, Op: risk.OpExists, Value: jsontext.Value("true")}}, here...)
}

func (r *riskReader) predicate(path, id, key string, op member) []risk.Predicate {
	one := func(name, value string) []risk.Predicate {
		return []risk.Predicate{{Path: path, Op: name, Value: jsontext.Value(value)}}
	}
	if op.value.kind == isNull {
		switch op.key {
		case risk.OpEq:
			r.note(op.value, id, key, NullValue, "eq: null is true in ctrl of an argument that is null or missing",
				"exists: false; null itself is unknown, which counts as more risk")
			return one(risk.OpExists, "false")
		case risk.OpNe:
			r.note(op.value, id, key, NullValue, "ne: null is true in ctrl of an argument that is there",
				"exists: true; null itself is unknown, which counts as more risk")
			return one(risk.OpExists, "true")
		}
	}
	value, ok := r.json(op.value, op.key == risk.OpIn)
	if !ok {
		return nil
	}
	if op.key == risk.OpContains {
		r.note(op.value, id, key, Contains, fmt.Sprintf("in ctrl, contains: %s misses every other case, and lists",
			visible.Text(value)),
			"contains looks at texts in any case, and at the elements of lists")
	}
	return one(op.key, value)
}

// json writes a value as JSON does.
func (r *riskReader) json(n *node, list bool) (string, bool) {
	if list {
		if !r.is(n, isList) {
			return "", false
		}
		parts := make([]string, len(n.items))
		for k, item := range n.items {
			part, ok := r.json(item, false)
			if !ok {
				return "", false
			}
			parts[k] = part
		}
		return "[" + strings.Join(parts, ",") + "]", true
	}
	switch n.kind {
	case isText:
		return jsonText(n.text), true
	case isNumber, isBool:
		return n.text, true
	}
	r.fault(n, "a text, a number, true or false is compared here, not %s", kindNames[n.kind])
	return "", false
}

// jsonText quotes a text as JSON and YAML do. What does not show is escaped, since no file of ours may hold it.
func jsonText(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic("ctrl: a text that was read is not UTF-8")
	}
	var out strings.Builder
	for _, r := range string(b) {
		switch {
		case visible.Text(string(r)) == string(r):
			out.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		}
	}
	return out.String()
}
