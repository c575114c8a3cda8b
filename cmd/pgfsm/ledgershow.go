package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

func newLedgerShow(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "show RUN",
		Short:   "Show how one run stands, and all that happened to it",
		Example: `  pgfsm ledger show 01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.view(cmd.Context(), w, func(r ledger.Reader) error { return showRun(cmd.Context(), w, r, results{p}, args[0], f.json) })
		},
	}
}

// ledgerRequest is the --json form of how a run stands.
type ledgerRequest struct {
	Run        string           `json:"run"`
	Status     ledger.Status    `json:"status"`
	State      string           `json:"state"`
	At         string           `json:"at"`
	Updated    string           `json:"updated"`
	Kind       string           `json:"kind"`
	Actor      string           `json:"actor"`
	Task       string           `json:"task"`
	Env        string           `json:"env"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
	Args       jsontext.Value   `json:"args,omitzero"`
	Arguments  canonical.Digest `json:"arguments"`
	Definition canonical.Digest `json:"definition"`
	Bundle     canonical.Digest `json:"bundle"`
	RiskMode   string           `json:"risk_mode"`
	RiskScore  int              `json:"risk_score"`
	Policy     string           `json:"policy"`
	Code       string           `json:"code"`
	Reason     string           `json:"reason"`
	Binding    canonical.Digest `json:"binding"`
	Approvers  []string         `json:"approvers"`
	Quorum     int              `json:"quorum"`
	Agreed     int              `json:"agreed"`
	Expires    string           `json:"expires"`
	Owner      string           `json:"owner"`
	Sent       string           `json:"sent"`
	Ended      string           `json:"ended"`
	Steps      int              `json:"steps"`
	Head       canonical.Digest `json:"head"`
}

// newLedgerRequest takes what people may want to know of a request, with its arguments whole.
func newLedgerRequest(r ledger.Reader, q *ledger.Request) (ledgerRequest, error) {
	args, err := q.Call(r)
	return ledgerRequest{
		Run: q.RunID, Status: q.Status, State: string(q.State), At: q.At, Updated: q.Updated, Kind: q.Kind, Actor: q.Actor, Task: q.Task,
		Env: q.Env, Server: q.Server, Tool: q.Tool, Args: args, Arguments: q.Arguments, Definition: q.Definition, Bundle: q.Bundle,
		RiskMode: q.Mode, RiskScore: q.Score, Policy: q.Policy, Code: q.Code, Reason: q.Reason, Binding: q.Binding,
		Approvers: q.Approvers, Quorum: q.Quorum, Agreed: q.Agreed, Expires: q.Expires, Owner: q.Owner, Sent: q.Sent, Ended: q.Ended,
		Steps: q.Steps, Head: q.Head,
	}, err
}

func showRun(ctx context.Context, w world, r ledger.Reader, made results, run string, asJSON bool) error {
	q, err := r.Request(run)
	if err != nil {
		return noRun(run, err)
	}
	d, err := newLedgerRequest(r, &q)
	if err != nil {
		return err
	}
	result, note, err := made.of(ctx, r, &q)
	if err != nil {
		note = "the result cannot be shown: " + err.Error()
	}
	var events []eventLine
	for e, err := range r.EventsOf(run) {
		if err != nil {
			return err
		}
		line, err := newEventLine(r, &e)
		if err != nil {
			return err
		}
		events = append(events, line)
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			Request       ledgerRequest `json:"request"`
			Events        []eventLine   `json:"events"`

			Result     jsontext.Value `json:"result"` // as the agent gets it; null if there is none
			ResultNote string         `json:"result_note"`
		}{schemaVersion, d, events, orNull(result), note})
	}
	d.print(w)
	switch {
	case note != "":
		fmt.Fprintf(w.stdout, "%s %s\n\n", newInk(w).bold("Result:"), visible.Text(note))
	case result != nil:
		fmt.Fprintf(w.stdout, "%s\n%s\n\n", newInk(w).bold("Result:"), indented(result, wholeTrace(run)))
	}
	for i := range events {
		fmt.Fprintf(w.stdout, "%6d  %s  %s\n", events[i].Seq, visible.Text(events[i].At), events[i].told(false))
	}
	return nil
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// print shows people how a run stands; what does not apply is left out.
func (d *ledgerRequest) print(w world) {
	k := newInk(w)
	tool := d.Tool
	if d.Server != "" {
		tool = d.Server + " " + d.Tool
	}
	votes := ""
	if d.Binding != "" {
		votes = fmt.Sprintf("%d of %d", d.Agreed, d.Quorum)
		if len(d.Approvers) > 0 {
			votes += ", by " + strings.Join(d.Approvers, " or ")
		}
	}
	risk := ""
	if d.RiskMode != "" {
		risk = fmt.Sprintf("%s, score %d", d.RiskMode, d.RiskScore)
	}
	for _, row := range []struct{ name, value string }{
		{"Run", d.Run}, {"Status", string(d.Status)}, {"State", d.State}, {"Asked", d.At}, {"Updated", d.Updated}, {"Actor", d.Actor},
		{"Task", d.Task}, {"Environment", d.Env}, {"Tool", tool}, {"Definition", string(d.Definition)}, {"Risk", risk}, {"Policy", d.Policy},
		{"Code", d.Code}, {"Reason", d.Reason}, {"Binding", string(d.Binding)}, {"Approvals", votes}, {"Expires", d.Expires},
		{"Process", d.Owner}, {"Call sent", d.Sent}, {"Ended", d.Ended}, {"Bundle", string(d.Bundle)}, {"Head", string(d.Head)},
	} {
		if row.value != "" {
			fmt.Fprintf(w.stdout, "%s %s\n", k.bold(fmt.Sprintf("%-12s", row.name+":")), visible.Text(row.value))
		}
	}
	if len(d.Args) > 0 {
		fmt.Fprintf(w.stdout, "%s\n%s\n", k.bold("Arguments:"), indented(d.Args, wholeTrace(d.Run)))
	}
	fmt.Fprintln(w.stdout)
}
