package present

import (
	"cmp"
	"fmt"
	"strconv"

	"pgfsm/internal/config"
	"pgfsm/policy/prove"
)

// A Claim is a claim of the configuration, with what was found about it.
type Claim struct {
	ID     string
	Text   string // what it says, in the words of the file
	Status string // of package prove
	Tools  int    // the tools whose calls it speaks about
	Cells  int
	Why    string // why it is not proved; empty if it is
}

// NewClaim returns a claim with its result.
func NewClaim(c *config.PolicyClaim, r *prove.Result) Claim {
	out := Claim{ID: r.ID, Status: r.Status, Tools: r.Tools, Cells: r.Cells, Why: whyNotProved(r)}
	switch {
	case c.Path != "":
		out.Text = c.Kind + ": " + c.Path
	case c.Quorum > 0:
		out.Text = fmt.Sprintf("%s: %s, quorum %d", c.Kind, c.Effect, c.Quorum)
	default:
		out.Text = c.Kind + ": " + c.Effect
	}
	server, tool, env := cmp.Or(c.Match.Server, "*"), cmp.Or(c.Match.Tool, "*"), cmp.Or(c.Match.Env, "*")
	for _, row := range append(globRows(server, tool, env), filledRows([]Row{{"when", c.When}})...) {
		out.Text += "; " + row.Name + ": " + row.Value
	}
	return out
}

// whyNotProved describes a result for people; empty for a proof.
func whyNotProved(r *prove.Result) string {
	switch {
	case r.Status == prove.Proved:
		return ""
	case r.Call != nil:
		return fmt.Sprintf("the call of %s of %s by %s with %s contradicts it; pgfsm policy prove shows how to repeat it",
			r.Call.Tool, r.Call.Server, strconv.Quote(r.Call.Actor), r.Call.Args)
	case r.Status == prove.Refuted:
		return "no call has this decision"
	case r.Where != "":
		return fmt.Sprintf("%s (%s: %s)", r.Reason, r.Where, r.Condition)
	}
	return r.Reason
}
