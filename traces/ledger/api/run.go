package api

import (
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// showSteps returns the steps of a run as far as they are recorded.
func (h *Handler) showSteps(v *visit) (answer, error) {
	var out present.Steps
	err := h.Ledger.View(v.r.Context(), func(r ledger.Reader) error {
		steps, underWay, err := ledger.Steps(v.r.Context(), r, v.run, h.Replayer)
		out = present.NewSteps(v.run, steps, underWay, v.caller.May(ledger.ActAudit))
		return err
	})
	return jsonAnswer(out), orUnknown(err)
}

// showWhatIf judges a recorded run by another bundle of the log.
func (h *Handler) showWhatIf(v *visit) (answer, error) {
	bundle := canonical.Digest("")
	if text, given := v.query["bundle"]; given {
		var err error
		if bundle, err = canonical.ParseDigest(text); err != nil {
			return answer{}, newProblem(QueryInvalid, "bundle must be the digest of a bundle: "+err.Error())
		}
	}
	out, err := answerInTurn(h, v, func(r ledger.Reader) (out present.WhatIf, err error) {
		tried, err := ledger.TryBundle(r, h.Replayer, v.run, bundle)
		if err != nil {
			return out, err
		}
		return present.NewWhatIf(v.run, &tried), nil
	})
	if errors.Is(err, ledger.ErrBundle) {
		err = newProblem(QueryInvalid, ledger.ErrBundle.Error())
	}
	return out, orUnknown(err)
}

// showInclusion returns the positions of a run's entries in the log.
func (h *Handler) showInclusion(v *visit) (answer, error) {
	var out ledger.Inclusion
	err := h.Ledger.View(v.r.Context(), func(r ledger.Reader) (err error) {
		out, err = ledger.InclusionOf(r, v.run)
		return err
	})
	return jsonAnswer(out), orUnknown(err)
}

func orUnknown(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return &ledger.Refusal{Code: ledger.RefusedUnknown, Message: "the ledger has no such run"}
	}
	return err
}
