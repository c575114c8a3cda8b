package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/visible"
	"pgfsm/states"
)

// printAnswer shows people what came of a run.
func printAnswer(out io.Writer, k ink, d document) {
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
		fmt.Fprintf(out, "%s %s\n", k.bold("Waits for a person:"), visible.Text(d.Reason))
		if d.Ledger != "" && d.Approval != nil {
			printApproval(out, d)
		}
	default:
		printResult(out, k, d)
	}
	if d.Ledger != "" {
		fmt.Fprintf(out, "\nledger %s\nrun    %s\nhead   %s\n", visible.Text(filepath.ToSlash(d.Ledger)), d.RunID, d.Head)
		return
	}
	fmt.Fprintf(out, "\ntrace %s\nhead  %s\n", visible.Text(filepath.ToSlash(*d.Trace)), d.Head)
}

// printApproval says what a held run waits for, and what can be done about it.
func printApproval(out io.Writer, d document) {
	a := d.Approval
	who := "anybody who may approve, but not who asked"
	if len(a.Approvers) > 0 {
		who = "one of: " + strings.Join(a.Approvers, ", ")
	}
	fmt.Fprintf(out, "Who decides: %s. Needed: %d. Until: %s.\n", visible.Text(who), a.Quorum, a.Expires)
	fmt.Fprintf(out, "Digest: %s\n", a.Binding)
	fmt.Fprintf(out, "What to do: pgfsm approvals show %s; when it is decided, pgfsm resume %s\n", d.RunID, d.RunID)
}

func printResult(out io.Writer, k ink, d document) {
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
	fmt.Fprintln(out, indented(content))
	if d.Note != "" {
		fmt.Fprintf(out, "%s %s\n", k.bold("Note:"), visible.Text(d.Note))
	}
}

// maxShown bounds the result that is shown; the trace has all of it.
const maxShown = 8 << 10

func indented(v jsontext.Value) string {
	shown := v.Clone()
	if err := shown.Indent(jsontext.WithIndent("  ")); err != nil {
		shown = v
	}
	if len(shown) > maxShown {
		more := fmt.Sprintf("\n… %d more bytes; the trace has all of it", len(shown)-maxShown)
		return asciiControls(shown[:maxShown]) + more
	}
	return asciiControls(shown)
}
