package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
)

// answerPrinter returns a function that prints how a run ended. waiting: this process waits for the
// decision, and makes the call.
func (a *app) answerPrinter(d present.Outcome, waiting bool) func(io.Writer, ink) {
	path, hint := d.Ledger, commandText(a.flag, "ledger", "trace", d.RunID)+" writes all of it"
	if d.Trace != "" {
		path, hint = d.Trace, "the trace has all of it"
	}
	return templatePrinter("answer", struct {
		present.Outcome
		ToolError, Waiting               bool
		Path, Rest, Remedy, Show, Resume string
	}{
		d, d.IsError != nil && *d.IsError, waiting,
		filepath.ToSlash(path), hint, policy.Remedy(d.Code), commandText(a.flag, "approvals", "show", d.RunID),
		commandText(a.flag, "resume", d.RunID),
	})
}

// maxShown bounds the printed text of a result, in bytes: four screens.
const maxShown = 8 << 10

// indentValue indents a value. If the value is too large, it returns the beginning and the text
// hint, which tells where to find all of it.
func indentValue(v jsontext.Value, hint string) string {
	text := v.Clone()
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		text = v
	}
	if len(text) > maxShown {
		more := fmt.Sprintf("\n… %d more bytes; %s", len(text)-maxShown, hint)
		return visible.JSON(text[:maxShown]) + more
	}
	return visible.JSON(text)
}

// stepPrinter returns a function that prints each recorded transition. With --json, the command
// prints only the result.
func (a *app) stepPrinter() runner.Watch {
	if a.json {
		return nil
	}
	k := newInk(a.w)
	return func(run *states.Run, s states.Step) {
		yes := s.To != states.Blocked && s.To != states.Failed
		line := fmt.Sprintf("%-11s %s", s.To, visible.Clip(stageLine(run, s), maxLine))
		fmt.Fprintf(a.w.stdout, "%s %s\n", k.mark(yes), strings.TrimRight(line, " "))
	}
}

// maxLine bounds the line of one stage, in bytes.
const maxLine = 400

// stageLine describes the result of a step in one line.
func stageLine(run *states.Run, s states.Step) string {
	f := run.Facts()
	switch s.To {
	case states.Discovered:
		return discoveredLine(f.Discovered)
	case states.Planned:
		plan := string(f.Planned.Plan)
		if model := run.Bundle().Content().Planner.LLM; model != nil && bytes.Contains(s.Event, []byte(`"exchanges":[{`)) {
			plan = fmt.Sprintf("(%s) %s", model.Model, plan)
		}
		return plan
	case states.Pending:
		return f.Held.Reason
	case states.Permitted:
		return "A permit for exactly this call: " + f.Permitted.Permit.Short() + "."
	case states.Dispatched:
		return "The permit is consumed; one tools/call to " + f.Permitted.Server + "."
	case states.Executed:
		return fmt.Sprintf("The result has %d bytes.", f.Executed.Bytes)
	case states.Answered:
		return f.Answered.Note
	case states.NeedsInfo:
		return "The planner asks for what is missing."
	case states.Blocked, states.Failed:
		// The answer has the full reason.
		return fmt.Sprintf("[%s %s]", f.Stopped.Verdict.Gate, f.Stopped.Verdict.Code)
	}

	var fact struct {
		Verdict policy.Verdict `json:"verdict"`
	}
	_ = json.Unmarshal(s.Facts, &fact) // other facts have no verdict, so no reason is printed

	return fact.Verdict.Reason
}

func discoveredLine(f *states.DiscoveredFact) string {
	up, tools := 0, 0
	var down []string
	for _, s := range f.Servers {
		if s.Status == "up" {
			up++
			tools += s.Tools
		} else {
			down = append(down, fmt.Sprintf("%s is down (%s: %s)", s.Server, s.Code, s.Reason))
		}
	}
	line := fmt.Sprintf("%d of %s, %s, %d on the effective allowlist",
		up, cli.Count(len(f.Servers), "server"), cli.Count(tools, "tool"), len(f.Effective))
	if len(down) > 0 {
		line += "; " + strings.Join(down, "; ")
	}
	return line
}
