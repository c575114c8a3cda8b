package schema

// The defaults of [Limits]. Each is far above what a tool's schema needs and far below what hurts.
const (
	defaultBytes        = 1 << 20
	defaultDepth        = 128
	defaultValues       = 100_000
	defaultSubschemas   = 8192
	defaultRefs         = 2048
	defaultPointerBytes = 8 << 20
	defaultPatternBytes = 4096
	defaultPatternSteps = 2000
	defaultAllPatterns  = 50_000
	defaultChain        = 128
	defaultExpansion    = 1 << 14
	defaultNumberBytes  = 256
	defaultExponent     = 512
	defaultDocDepth     = 128
	defaultDocWork      = 1 << 24
	defaultWorkPerByte  = 4
)

// Limits bounds what a schema may cost to compile and a document to judge. A limit is the largest value that passes.
// Zero allows nothing: the zero Limits refuses every schema.
type Limits struct {
	Bytes        int // size of the schema, in bytes
	Depth        int // nesting of the schema as JSON; a scalar has depth 0
	Values       int // JSON values in the schema, of any kind
	Subschemas   int // objects and booleans in the schema: what could be a subschema
	Refs         int // $ref, $dynamicRef and $recursiveRef members
	PointerBytes int // the JSON pointers to all values together, in bytes: the compiler keeps many of them
	PatternBytes int // size of one regular expression, in bytes
	PatternSteps int // instructions of one compiled regular expression
	AllPatterns  int // instructions of all compiled regular expressions together
	Chain        int // subschemas that apply in place of one another, in one chain ($ref to $ref, allOf in allOf)
	Expansion    int // subschemas that one place of a document is held against

	NumberBytes int // length of a number literal, in the schema and in documents, in bytes
	Exponent    int // magnitude of the exponent of a number literal, in the schema and in documents

	DocDepth       int // nesting of a document; a scalar has depth 0
	DocWork        int // upper bound of the evaluations that a document costs, in units of about 0.1 µs
	DocWorkPerByte int // what each byte of the document adds to DocWork
}

// DefaultLimits returns the limits that pgfsm uses unless the operator sets others.
func DefaultLimits() Limits {
	return Limits{
		Bytes:          defaultBytes,
		Depth:          defaultDepth,
		Values:         defaultValues,
		Subschemas:     defaultSubschemas,
		Refs:           defaultRefs,
		PointerBytes:   defaultPointerBytes,
		PatternBytes:   defaultPatternBytes,
		PatternSteps:   defaultPatternSteps,
		AllPatterns:    defaultAllPatterns,
		Chain:          defaultChain,
		Expansion:      defaultExpansion,
		NumberBytes:    defaultNumberBytes,
		Exponent:       defaultExponent,
		DocDepth:       defaultDocDepth,
		DocWork:        defaultDocWork,
		DocWorkPerByte: defaultWorkPerByte,
	}
}
