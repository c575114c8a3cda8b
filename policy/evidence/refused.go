package evidence

import "fmt"

// The stable codes of a refused summary.
const (
	// CodeMissing means that the evidence is nowhere in the typed payload.
	CodeMissing = "evidence_missing"
	// CodeTooShort means that the evidence has too few words and is neither a whole value nor a
	// whole part of one.
	CodeTooShort = "evidence_too_short"
	// CodeUnsupported means that a number, date or identifier of the claim is not in its evidence.
	CodeUnsupported = "claim_token_unsupported"
	// CodeNotStrict means that the summary has another shape, or text that is never displayed.
	CodeNotStrict = "summary_not_strict"
	// CodeTooLarge means that a limit on size or number was passed.
	CodeTooLarge = "summary_too_large"
	// CodeEmpty means that there is no item.
	CodeEmpty = "summary_empty"
)

// WholeSummary is the Item of a refusal that is not about a single item.
const WholeSummary = -1

// A RefusedError gives the reason why a summary is refused.
type RefusedError struct {
	Code   string // stable, machine-readable
	Item   int    // index of the item, or [WholeSummary]
	Reason string // a sentence for a person
}

// Error gives code, item (counted from 0) and reason.
func (e *RefusedError) Error() string {
	if e.Item == WholeSummary {
		return fmt.Sprintf("%s: %s", e.Code, e.Reason)
	}
	return fmt.Sprintf("%s: item %d: %s", e.Code, e.Item, e.Reason)
}

func refuse(code string, item int, format string, args ...any) *RefusedError {
	return &RefusedError{Code: code, Item: item, Reason: fmt.Sprintf(format, args...)}
}
