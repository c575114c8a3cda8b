package api

import (
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// maxBundles bounds the number of bundles that a page offers.
const maxBundles = 20

// A whatIfView is the part of a run's page that judges the call by another bundle.
type whatIfView struct {
	Choices []choice
	Bundle  canonical.Digest // the chosen one; empty: none
	Error   string
	Answer  *present.WhatIf // nil: nothing was asked
	Rows    []whatIfRow
	CLI     string
}

// A choice is one bundle to choose.
type choice struct {
	Bundle canonical.Digest
	Label  string
	Chosen bool
}

// A whatIfRow compares the run's own bundle with the chosen one.
type whatIfRow struct{ Name, Own, Other string }

// chosenBundle reads the bundle that the query chooses.
func (v *visit) chosenBundle() (bundle canonical.Digest, chosen bool, err error) {
	text, chosen := v.query["bundle"]
	if !chosen {
		return "", false, nil
	}
	if bundle, err = canonical.ParseDigest(text); err != nil {
		return "", false, newProblem(QueryInvalid, "bundle must be the digest of a bundle: "+err.Error())
	}
	return bundle, true, nil
}

// readWhatIf judges a recorded run by another bundle of the log.
func (h *Handler) readWhatIf(v *visit) (out present.WhatIf, err error) {
	bundle, _, err := v.chosenBundle()
	if err != nil {
		return out, err
	}
	tried, err := readList(h, v, func(r ledger.Reader) (ledger.WhatIf, error) {
		return ledger.TryBundle(r, h.Replayer, v.id, bundle)
	})
	switch {
	case errors.Is(err, ledger.ErrBundle):
		return out, newProblem(QueryInvalid, ledger.ErrBundle.Error())
	case err != nil:
		return out, explainUnknownRun(err)
	}
	return present.NewWhatIf(v.id, &tried), nil
}

// addWhatIf adds the bundles of the log, and the chosen bundle's judgement of the run.
func (h *Handler) addWhatIf(v *visit, r ledger.Reader, w *whatIfView) error {
	activations, err := h.Ledger.Activations(r, maxBundles)
	if err != nil {
		return err
	}

	for i, a := range activations {
		label := fmt.Sprintf("%s, activated %s", a.Bundle.Short(), a.At)
		if i == 0 {
			label = "the active one: " + label
		}
		w.Choices = append(w.Choices, choice{a.Bundle, label, a.Bundle == w.Bundle})
	}

	if w.Bundle == "" {
		return nil
	}

	w.CLI = present.CommandLine("pgfsm", "ledger", "what-if", v.id, "--bundle", string(w.Bundle))
	tried, err := ledger.TryBundle(r, h.Replayer, v.id, w.Bundle)

	switch {
	case errors.Is(err, ledger.ErrBundle):
		w.Error = "The ledger has no such bundle that this version of pgfsm can read."
		return nil
	case err != nil && v.r.Context().Err() != nil, errors.Is(err, ledger.ErrUnavailable):
		return err
	case err != nil:
		h.Log("run " + v.id + " cannot be judged again: " + err.Error())
		w.Error = "The run cannot be judged again; the service's log says why."
		return nil
	}

	answer := present.NewWhatIf(v.id, &tried)
	w.Answer = &answer
	ownRows, judgedRows := answer.Own.Rows(), answer.Judged.Rows()

	for i := range ownRows {
		if ownRows[i].Value != "" || judgedRows[i].Value != "" {
			w.Rows = append(w.Rows, whatIfRow{ownRows[i].Name, ownRows[i].Value, judgedRows[i].Value})
		}
	}

	return nil
}
