package gates

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// outputTypes are the types of the tool's structured content that cases name.
var outputTypes = map[string]string{
	"": `{"type":"object","properties":{"status":{"type":"string"},"title":{"type":"string","maxLength":40},` +
		`"pages":{"type":"integer","minimum":0,"maximum":500},"price":{"type":"number"},"draft":{"type":"boolean"},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":3},` +
		`"author":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}},"required":["status"]}`,
	"open":     `{"type":"object","properties":{"status":{"type":"string"}},"required":["status"],"additionalProperties":true}`,
	"anything": `{"type":"object"}`,
	"nothing":  `{"type":"object","additionalProperties":false}`,
}

// Types that the operator did not register: none, one that the server declares, and one that the server declares and that cannot
// be used.
const (
	untyped    = "none"
	declared   = "declared"
	unusable   = "declared_unusable"
	typed      = "typed"
	raw        = "raw"
	fetchFirst = `{"type":"call_tool","server":"kb","tool":"fetch_entry","args":{"entry_id":"entry-002"}}`
)

// typing compares the typing of results (INV-4) in whole runs with a table.
func typing(e *evaluation) (Suite, error) {
	cases, err := corpus.Load[corpus.Output]("outputs")
	if err != nil {
		return Suite{}, err
	}
	var trials []trial
	for _, c := range cases {
		b, page, err := typedWorld(c.Type)
		if err != nil {
			return Suite{}, fmt.Errorf("%s: %w", c.ID, err)
		}
		at := []*states.ToolsListed{listed(page, pageDesk)}
		trials = append(trials, trial{c.ID, c.Want, c.Bytes(), func(in []byte) string {
			r, w := questionRun(b), &world{listed: at, plan: []byte(fetchFirst), result: in}
			o, err := e.subject.play(e.runner, r, w)
			return typedAs(r, o, err)
		}})
	}
	return judge("results of a call, and whether their content is of the registered type", trials), nil
}

// typedWorld is a bundle, and the first server's answer to tools/list, with a type registered or declared.
func typedWorld(name string) (*policy.Bundle, string, error) {
	c, page := content(), pageKB
	declare := func(schema string) string {
		return strings.Replace(pageKB, `"annotations"`, `"outputSchema":`+schema+`,"annotations"`, 1)
	}
	switch of, known := outputTypes[name]; {
	case known:
		c.Outputs = []policy.ToolSchema{{Server: serverKB, Tool: toolFetch, Schema: jsontext.Value(of)}}
	case name == untyped:
	case name == declared:
		page = declare(outputTypes[""])
	case name == unusable:
		page = declare(`{"$ref":"https://example.com/type.json"}`)
	default:
		return nil, "", fmt.Errorf("there is no type %q", name)
	}
	b, err := policy.Compile(c)
	return b, page, err
}

// typedAs says whether a result was typed. A raw answer must say why it is raw.
func typedAs(r *states.Run, o states.Outcome, err error) string {
	switch {
	case err != nil:
		return "an error: " + err.Error()
	case o.State != string(states.Answered):
		return o.State + " " + string(o.Code)
	case r.Structured() != nil:
		return typed
	case o.Note == "":
		return "raw, and no note says why"
	}
	return raw
}
