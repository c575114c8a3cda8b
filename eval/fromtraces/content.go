package fromtraces

import (
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// nowhere is the address of a suite's servers: they are never contacted.
const nowhere = "http://127.0.0.1:1/mcp"

// divided is the part of a bundle that judges calls, and apart from it the last grant, if there is one.
type divided struct {
	content policy.Content
	grant   *policy.Grant
}

// divide removes the parts of a bundle that do not judge a call: the planner, the servers' addresses, types of results, the mode
// of summaries, and the names of grants.
func divide(from *policy.Content) divided {
	d := divided{content: *from}
	c := &d.content
	c.Planner = policy.Planner{Mode: policy.PlannerRouter, Routes: []policy.Route{}}
	c.Summary, c.Outputs = policy.SummaryNever, []policy.ToolSchema{}
	c.Servers = make([]policy.Server, len(from.Servers))
	for i, s := range from.Servers {
		c.Servers[i] = policy.Server{
			Name: s.Name, Type: "http", URL: nowhere, Args: []string{}, Headers: []string{}, Env: []string{},
			ConnectTimeout: policy.DefaultConnectTimeout, Timeout: policy.DefaultTimeout, TimeoutTotal: policy.DefaultTimeoutTotal,
		}
	}
	c.Grants = slices.Clone(from.Grants)
	for i := range c.Grants {
		c.Grants[i].Name = ""
	}
	if n := len(c.Grants); n > 0 {
		d.grant, c.Grants = &c.Grants[n-1], c.Grants[:n-1]
	}
	if len(c.Grants) == 0 {
		c.Grants = nil
	}
	return d
}

func (d *divided) digest() (canonical.Digest, error) {
	return canonical.SumOf("suite of traces", &d.content)
}
