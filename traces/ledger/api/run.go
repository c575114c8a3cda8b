package api

import (
	"errors"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// steps returns the steps of a run as far as they are recorded.
func (h *Handler) steps(c *call) (answer, error) {
	var out present.Steps
	err := h.Ledger.View(c.r.Context(), func(r ledger.Reader) error {
		steps, underWay, err := ledger.Steps(c.r.Context(), r, c.run, h.Replayer)
		out = present.NewSteps(c.run, steps, underWay, c.caller.May(ledger.ActAudit))
		return err
	})
	return jsonAnswer(out), orUnknown(err)
}

// whatIf judges a recorded run by another bundle of the log.
func (h *Handler) whatIf(c *call) (answer, error) {
	bundle := canonical.Digest("")
	if text, given := c.query["bundle"]; given {
		var err error
		if bundle, err = canonical.ParseDigest(text); err != nil {
			return answer{}, newProblem(QueryInvalid, "bundle must be the digest of a bundle: "+err.Error())
		}
	}
	var out present.WhatIf
	err := h.inTurn(c, func(r ledger.Reader) error {
		tried, err := ledger.TryBundle(r, h.Replayer, c.run, bundle)
		if err == nil {
			out = present.NewWhatIf(c.run, &tried)
		}
		return err
	})
	if errors.Is(err, ledger.ErrBundle) {
		err = newProblem(QueryInvalid, ledger.ErrBundle.Error())
	}
	return jsonAnswer(out), orUnknown(err)
}

// inclusion returns the positions of a run's entries in the log.
func (h *Handler) inclusion(c *call) (answer, error) {
	var out ledger.Inclusion
	err := h.Ledger.View(c.r.Context(), func(r ledger.Reader) (err error) {
		out, err = ledger.Include(r, c.run)
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
