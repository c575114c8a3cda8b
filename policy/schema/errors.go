package schema

import "fmt"

// The codes of a [RefusedError].
const (
	CodeNotStrict         = "schema_not_strict"          // not one strict JSON value, or neither object nor boolean
	CodeTooLarge          = "schema_too_large"           // Bytes, Values, Subschemas, Refs or PointerBytes
	CodeTooDeep           = "schema_too_deep"            // Depth
	CodeNumberTooLarge    = "schema_number_too_large"    // NumberBytes or Exponent
	CodeDialectUnknown    = "schema_dialect_unknown"     // $schema names none of the five dialects
	CodeReferenceRefused  = "schema_reference_refused"   // a dynamic reference, one to nothing, or an inner identifier
	CodeReferenceCycle    = "schema_reference_cycle"     // a subschema applies in place of itself
	CodeExpansionTooLarge = "schema_expansion_too_large" // Expansion or Chain
	CodePatternRefused    = "schema_pattern_refused"     // no RE2 expression, PatternBytes, PatternSteps, AllPatterns
	CodeNotASchema        = "schema_invalid"             // the meta-schema of the dialect rejects it
)

// The codes of an [InvalidError].
const (
	CodeInvalid           = "invalid"                   // the schema rejects it
	CodeDocumentNotStrict = "document_not_strict"       // not one strict JSON value
	CodeDocumentTooDeep   = "document_too_deep"         // DocDepth
	CodeDocumentNumber    = "document_number_too_large" // NumberBytes or Exponent
	CodeDocumentTooCostly = "document_too_costly"       // DocWork
	CodeNoSchema          = "no_schema"                 // the zero Schema: nothing was compiled
)

// A RefusedError is the reason why a schema is not used. It says nothing about a document.
type RefusedError struct {
	Code   string // one of the Code constants
	Path   string // JSON pointer into the schema, "" for the whole
	Reason string // one sentence for a person, bounded and escaped
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("schema refused at %s: %s (%s)", placeName(e.Path), e.Reason, e.Code)
}

// An InvalidError is the reason why a document is refused. Issues is sorted, never empty, and at
// most [MaxIssues] long.
type InvalidError struct {
	Code   string // one of the Code constants
	Issues []Issue
	More   int      // issues beyond those listed
	Nulls  []string // the paths of those whose value is null, each once
}

// An Issue is one thing that is wrong with a document.
type Issue struct {
	Path    string // JSON pointer into the document, "" for the whole
	Keyword string // the schema keyword that is not satisfied, "" when it is not one
	Message string // for a person, bounded and escaped; its subject is the value
}

func (i Issue) String() string { return placeName(i.Path) + " " + i.Message }

func (e *InvalidError) Error() string {
	text := "does not fit the schema"
	for n, issue := range e.Issues {
		sep := "; "
		if n == 0 {
			sep = ": "
		}
		text += sep + issue.String()
	}
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

func newInvalidError(code, path, message string) *InvalidError {
	return &InvalidError{Code: code, Issues: []Issue{{Path: path, Message: message}}}
}

func placeName(pointer string) string {
	if pointer == "" {
		return "the top level"
	}
	return quoteText(pointer)
}
