package ledger

import (
	"context"
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// A Cause says what made a gateway activate a bundle.
type Cause string

// The causes.
const (
	CauseStart  Cause = "start"
	CauseSignal Cause = "signal"
	CauseWatch  Cause = "watch"  // the gateway saw that a file had changed
	CauseReload Cause = "reload" // a caller of the admin API asked for it
)

var causes = []Cause{CauseStart, CauseSignal, CauseWatch, CauseReload}

// An ActivationReason says why a gateway activates a bundle, and what changes with it.
type ActivationReason struct {
	Cause    Cause
	By       *Caller          // the caller who asked for the reload; nil for other causes
	Previous canonical.Digest // the bundle that the gateway used before; empty at the start
	Changed  []string         // changed keys of the configuration
	Proved   []string         // the claims that were proved for the bundle
	Settings Settings         // of the configuration
}

// RecordActivation records that a gateway activates a bundle. If a caller asked for the reload, the
// caller must be allowed to reload at that moment.
func (l *Ledger) RecordActivation(ctx context.Context, active *policy.Bundle, reason ActivationReason) error {
	return l.commit(ctx, func(b *batch) error {
		a := &bundleActivated{
			generation: l.newGeneration(active, machineDigest(), reason.Settings),
			Cause:      reason.Cause,
			Changed:    slices.Clone(reason.Changed),
			Previous:   reason.Previous,
			Proved:     slices.Clone(reason.Proved),
		}
		if reason.By != nil {
			if err := reason.By.recheckAction(b, b.now, ActReload); err != nil {
				return err
			}
			a.Actor = reason.By.Name
		}
		_, err := b.addGeneration(a, active)
		return err
	})
}

// checkCause returns what is wrong with the entry.
func (a *bundleActivated) checkCause() error {
	if !slices.Contains(causes, a.Cause) || (a.Cause == CauseReload) != (a.Actor != "") ||
		(a.Cause == CauseStart) != (a.Previous == "") {
		return ruleActivation.Broken("the cause %q, the actor %q and the previous bundle %q do not belong together", a.Cause,
			a.Actor, a.Previous)
	}
	return nil
}
