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

// answerOptions holds the flags that the suggested commands repeat.
type answerOptions struct {
	config  string // the file of -c
	waiting bool   // this process waits for the decision, and makes the call
}

// printAnswer prints how a run ended.
func printAnswer(out io.Writer, k ink, d present.Outcome, o answerOptions) {
	fmt.Fprintln(out)
	switch d.Type {
	case states.TypeFinalAnswer:
		fmt.Fprintf(out, "%s %s\n", k.bold("The planner asks:"), visible.Text(d.Reason))
	case states.TypeBlocked, states.TypeFailed:
		fmt.Fprintf(out, "%s %s\n", k.bold(d.Type+" by "+string(d.Gate)+", "+string(d.Code)+":"), visible.Text(d.Reason))
		fmt.Fprintf(out, "Effect: %s\n", d.Effect)
		if remedy := policy.Remedy(d.Code); remedy != "" {
			fmt.Fprintf(out, "What to do: %s\n", remedy)
		}
	case states.TypePending:
		fmt.Fprintf(out, "%s %s\n", k.bold("Waits for approval:"), visible.Text(d.Reason))
		switch {
		case d.Ledger == "":
			fmt.Fprintln(out, "Nobody can approve this call: the configuration names no ledger, which keeps held calls.")
			fmt.Fprintln(out, `What to do: add ledger: "sqlite:pgfsm.db" to the configuration, and repeat the call.`)
		case d.Approval != nil:
			printApproval(out, d, o)
		}
	default:
		printResult(out, k, d, o)
	}
	if d.Ledger != "" {
		fmt.Fprintf(out, "\nledger %s\nrun    %s\nhead   %s\n", visible.Text(filepath.ToSlash(d.Ledger)), d.RunID, d.Head)
		return
	}
	fmt.Fprintf(out, "\ntrace %s\nhead  %s\n", visible.Text(filepath.ToSlash(*d.Trace)), d.Head)
}

// printApproval prints the approval that a held run waits for, and the commands for it.
func printApproval(out io.Writer, d present.Outcome, o answerOptions) {
	a := d.Approval
	who := "any approver except the requester"
	if len(a.Approvers) > 0 {
		who = "one of: " + strings.Join(a.Approvers, ", ")
	}
	fmt.Fprintf(out, "Approvers: %s. Needed: %d. Until: %s.\n", visible.Text(who), a.Quorum, a.Expires)
	fmt.Fprintf(out, "Digest: %s\n", a.Binding)
	show := configured(o.config, "approvals", "show", d.RunID)
	if o.waiting {
		fmt.Fprintf(out, "What to do: %s\n", show)
		return
	}
	fmt.Fprintf(out, "What to do: %s; when it is decided, %s\n", show, configured(o.config, "resume", d.RunID))
}

func printResult(out io.Writer, k ink, d present.Outcome, o answerOptions) {
	if d.IsError != nil && *d.IsError {
		fmt.Fprintln(out, k.bad.Sprint("The tool reports an error."))
	}
	if len(d.Summary) > 0 {
		fmt.Fprintln(out, k.bold("Summary, each item with its evidence"))
		for i, item := range d.Summary {
			fmt.Fprintf(out, "%d. %s\n   %s\n", i+1, visible.Text(item.Claim), k.faint(fmt.Sprintf("%q at %s [%d:%d]",
				visible.Text(item.Evidence), visible.Text(item.At.Pointer), item.At.Start, item.At.End)))
		}
		fmt.Fprintln(out)
	}
	content, title := d.Typed, "Result (typed)"
	if content == nil {
		content, title = d.Raw, "Result (raw, untyped)"
	}
	fmt.Fprintln(out, k.bold(title))
	rest := "the trace has all of it"
	if d.Ledger != "" {
		rest = configured(o.config, "ledger", "trace", d.RunID) + " writes all of it"
	}
	fmt.Fprintln(out, indented(content, rest))
	if d.Note != "" {
		fmt.Fprintf(out, "%s %s\n", k.bold("Note:"), visible.Text(d.Note))
	}
}

// maxShown bounds the printed text of a result, in bytes: four screens.
const maxShown = 8 << 10

// wholeTrace returns a sentence with the command that writes all values of a run in the ledger.
func wholeTrace(run string) string { return "pgfsm ledger trace " + run + " writes all of it" }

// indented indents a value. If the value is too large, it returns the beginning and the text rest, which tells where to find all of it.
func indented(v jsontext.Value, rest string) string {
	shown := v.Clone()
	if err := shown.Indent(jsontext.WithIndent("  ")); err != nil {
		shown = v
	}
	if len(shown) > maxShown {
		more := fmt.Sprintf("\n… %d more bytes; %s", len(shown)-maxShown, rest)
		return visible.JSON(shown[:maxShown]) + more
	}
	return visible.JSON(shown)
}

// watch returns a function that prints each recorded transition. With --json, the command prints only the result.
func (a *app) watch() runner.Watch {
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
		return fmt.Sprintf("[%s %s]", f.Stopped.Verdict.Gate, f.Stopped.Verdict.Code) // the answer has the full reason
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
