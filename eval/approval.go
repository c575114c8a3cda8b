package eval

import (
	"errors"
	"fmt"

	"pgfsm/policy"
)

// An Approval is a call that people approved, by what configuration and when. The servers showed the usual tools then, those of
// the whole run, whatever they show in the case. The votes are replayed for the calls that an attack wants, so that what differs
// between the two is all that speaks against them.
type Approval struct {
	Call

	Bundle  string `json:"bundle,omitzero"`   // the configuration of then, from the folder of the cases file; empty: as in the case
	Actor   string `json:"actor,omitzero"`    // who asked; empty: as in the case
	At      string `json:"at,omitzero"`       // when it was asked, in policy.TimeForm; empty: as in the case
	VotesAt string `json:"votes_at,omitzero"` // when people voted; empty: when it was asked

	// SameRun: the votes are of the very run that makes the attack's call. Real runs never share an id; without this the id alone
	// would refuse every replay.
	SameRun bool `json:"same_run,omitzero"`
}

// checkApproval says what is wrong with the approval; nothing if it is one.
func (a *Approval) checkApproval() error {
	if err := errors.Join(a.check(), a.normal()); err != nil {
		return err
	}
	if err := checkPath(a.Bundle); err != nil {
		return fmt.Errorf("bundle %w", err)
	}
	if a.Actor != "" {
		if err := checkName(a.Actor); err != nil {
			return fmt.Errorf("actor %w", err)
		}
	}
	for _, m := range []struct{ name, value string }{{"at", a.At}, {"votes_at", a.VotesAt}} {
		if m.value != "" && !isTime(m.value) {
			return fmt.Errorf("%s must be a time of the form %s", m.name, policy.TimeForm)
		}
	}
	return nil
}
