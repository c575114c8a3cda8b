package schema

// Limits bounds the cost of compiling a schema and of judging a document. A limit is the largest
// value that passes. Zero allows nothing: the zero Limits refuses every schema.
type Limits struct {
	Bytes        int // size of the schema, in bytes
	Depth        int // nesting of the schema as JSON; a scalar has depth 0
	Values       int // JSON values in the schema, of any kind
	Subschemas   int // objects and booleans in the schema: what could be a subschema
	Refs         int // $ref members
	PointerBytes int // the JSON pointers to all values together, in bytes: the compiler keeps many of them
	PatternBytes int // size of one regular expression, in bytes
	PatternSteps int // instructions of one compiled regular expression
	AllPatterns  int // instructions of all compiled regular expressions together
	// Subschemas that apply in place of one another, in one chain ($ref to $ref, allOf in allOf)
	Chain     int
	Expansion int // subschemas that one place of a document is held against

	NumberBytes int // length of a number literal, in the schema and in documents, in bytes
	Exponent    int // magnitude of the exponent of a number literal, in the schema and in documents

	DocDepth       int // nesting of a document; a scalar has depth 0
	DocWork        int // upper bound of the evaluations that a document costs, in units of about 0.1 µs
	DocWorkPerByte int // each byte of the document adds this to DocWork
}

// DefaultLimits returns the limits that pgfsm uses unless the operator sets others. Each is far
// above what a tool's schema needs and far below what hurts.
func DefaultLimits() Limits {
	return Limits{
		Bytes:          1 << 20,
		Depth:          128,
		Values:         100_000,
		Subschemas:     8192,
		Refs:           2048,
		PointerBytes:   8 << 20,
		PatternBytes:   4096,
		PatternSteps:   2000,
		AllPatterns:    50_000,
		Chain:          128,
		Expansion:      1 << 14,
		NumberBytes:    256,
		Exponent:       512,
		DocDepth:       128,
		DocWork:        1 << 24,
		DocWorkPerByte: 4,
	}
}
