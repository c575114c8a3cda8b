package schema

import (
	"testing"

	"pgfsm/internal/test/check"
)

// plainSchema and plainArguments are what most tools look like: eight plain arguments.
const (
	plainSchema = `{
		"type": "object",
		"properties": {
			"query":    {"type": "string", "minLength": 1, "maxLength": 200},
			"site":     {"type": "string", "pattern": "^[a-z-]+$"},
			"limit":    {"type": "integer", "minimum": 1, "maximum": 100},
			"offset":   {"type": "integer", "minimum": 0},
			"archived": {"type": "boolean"},
			"order":    {"enum": ["newest", "oldest", "relevance"]},
			"author":   {"type": ["string", "null"]},
			"score":    {"type": "number"}
		},
		"required": ["query", "limit"]
	}`
	plainArguments = `{"query":"credential rotation policy","site":"security-team","limit":20,"offset":40,` +
		`"archived":false,"order":"relevance","author":null,"score":0.75}`
)

func BenchmarkJudge(b *testing.B) {
	s, err := Compile([]byte(plainSchema), DefaultLimits())
	check.NoError(b, err)
	doc := []byte(plainArguments)
	b.ReportAllocs()
	for b.Loop() {
		check.NoError(b, s.Judge(doc))
	}
}
