package evidence

import (
	_ "embed" // the schema is a file so that it can be published as it is
	"errors"

	"pgfsm/internal/canonical"
)

// The limits of a summary.
const (
	MaxItems         = 8         // items
	MaxClaimBytes    = 600       // bytes of UTF-8 in a claim
	MaxEvidenceBytes = 2000      // bytes of UTF-8 in a piece of evidence
	MaxSummaryBytes  = 128 << 10 // bytes of the document; MaxItems full items, with every byte escaped, fit
	maxSummaryDepth  = 3         // {"items":[{…}]}
)

// An Item is one sentence of a summary and its evidence.
type Item struct {
	Claim    string `json:"claim"`
	Evidence string `json:"evidence"`
}

// A Summary is the proposal of a summarizer. The zero Summary is refused.
type Summary struct {
	Items []Item `json:"items"`
}

//go:embed summary.schema.json
var schema []byte

// Schema returns the JSON Schema (draft-07) of a summary. JSON Schema counts characters where we
// count bytes, so a text beyond ASCII may fit the schema and still be too long.
func Schema() []byte { return append([]byte(nil), schema...) }

// Parse reads a summary strictly and judges its shape, sizes and characters; every error is a
// [*RefusedError]. [Lock] judges the evidence.
func Parse(doc []byte) (Summary, error) {
	if len(doc) > MaxSummaryBytes {
		return Summary{}, refuse(CodeTooLarge, WholeSummary,
			"the summary has %d bytes, more than %d", len(doc), MaxSummaryBytes)
	}
	if err := canonical.Check(doc, maxSummaryDepth); err != nil {
		if errors.Is(err, canonical.ErrTooDeep) {
			return Summary{}, refuse(CodeNotStrict, WholeSummary, "the summary nests deeper than items do")
		}
		return Summary{}, refuse(CodeNotStrict, WholeSummary, "%v", err)
	}

	var wire struct { // pointers, to tell a missing member and null from an empty value
		Items *[]struct {
			Claim    *string `json:"claim"`
			Evidence *string `json:"evidence"`
		} `json:"items"`
	}

	if err := canonical.Unmarshal(doc, &wire); err != nil {
		return Summary{}, refuse(CodeNotStrict, WholeSummary, "%v", err)
	}
	if wire.Items == nil {
		return Summary{}, refuse(CodeNotStrict, WholeSummary, `there is no list "items"`)
	}

	// A member that is missing or null is told from one that is empty.
	var s Summary
	for i, item := range *wire.Items {
		if item.Claim == nil || item.Evidence == nil {
			return Summary{}, refuse(CodeNotStrict, i, `an item needs "claim" and "evidence"`)
		}
		s.Items = append(s.Items, Item{Claim: *item.Claim, Evidence: *item.Evidence})
	}

	if refused := s.check(); refused != nil {
		return Summary{}, refused
	}

	return s, nil
}

// check judges sizes and characters. Lock calls it too, because not every summary comes from
// [Parse].
func (s Summary) check() *RefusedError {
	switch n := len(s.Items); {
	case n == 0:
		return refuse(CodeEmpty, WholeSummary, "the summary has no items")
	case n > MaxItems:
		return refuse(CodeTooLarge, WholeSummary, "the summary has %d items, more than %d", n, MaxItems)
	}

	for i, item := range s.Items {
		switch {
		case len(item.Claim) > MaxClaimBytes:
			return refuse(CodeTooLarge, i, "the claim has %d bytes, more than %d", len(item.Claim), MaxClaimBytes)
		case len(item.Evidence) > MaxEvidenceBytes:
			return refuse(CodeTooLarge, i, "the evidence has %d bytes, more than %d",
				len(item.Evidence), MaxEvidenceBytes)
		case !hasWord(item.Claim):
			return refuse(CodeNotStrict, i, "the claim says nothing")
		case item.Evidence == "":
			return refuse(CodeMissing, i, "the evidence is empty")
		}
		if problem := forbiddenContent(item.Claim, hiddenInClaim); problem != "" {
			return refuse(CodeNotStrict, i, "the claim holds %s", problem)
		}
		if problem := forbiddenContent(item.Evidence, hiddenInEvidence); problem != "" {
			return refuse(CodeNotStrict, i, "the evidence holds %s", problem)
		}
		if t, bad := invisibleToken(item.Evidence); bad {
			return refuse(CodeNotStrict, i, "the %s %q of the evidence holds an invisible character", t.Class, t.Text)
		}
	}
	return nil
}
