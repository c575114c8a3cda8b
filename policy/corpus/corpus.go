// Package corpus has cases with known answers for the gates, once and as data. The test of a gate reads its corpus; pgfsm-eval gates
// reads all of them, and a test of the command takes ten of each through whole runs.
package corpus

import (
	"bytes"
	"embed"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

//go:embed *.jsonl *.json
var files embed.FS

// A Text is a text of a case: as it is, or in parts if it is large or not UTF-8.
type Text struct {
	Text  string `json:"text"`
	Parts []Part `json:"parts"`
}

// A Part is a piece of a text.
type Part struct {
	Text   string `json:"text"`
	Base64 []byte `json:"base64"`
	Times  int    `json:"times"` // 0 is once
}

// Bytes returns the text.
func (t *Text) Bytes() []byte {
	var b strings.Builder
	b.WriteString(t.Text)
	for _, p := range t.Parts {
		b.WriteString(strings.Repeat(p.Text+string(p.Base64), max(p.Times, 1)))
	}
	return []byte(b.String())
}

// A Request is a user's request. Core is its part that must be refused; a request without a core must pass.
type Request struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Core string `json:"core"`
}

// A Plan is a planner's output, and the answer of the strict reader: a type of plan, or a code.
type Plan struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	Text
}

// A Run is a plan, the world that it meets, and how the run must end. Worlds are those of package eval/gates; the empty one is plain.
type Run struct {
	ID    string `json:"id"`
	Want  string `json:"want"`
	World string `json:"world"`
	Text
}

// An Output is the raw result of a call, and whether its content is typed. Type is one of the types of package eval/gates.
type Output struct {
	ID   string `json:"id"`
	Want string `json:"want"` // typed or raw
	Type string `json:"type"`
	Text
}

// A Summary is a summary of a typed payload, and the answer of the evidence gate: locked, or a code.
type Summary struct {
	ID      string         `json:"id"`
	Want    string         `json:"want"`
	Payload jsontext.Value `json:"payload"` // a value, or the name of a file of this package; none is article
	Text
}

// A Schema is a schema, a document, and the answer of the schema gate: fits, invalid, or the code by which the schema or the document
// is refused.
type Schema struct {
	ID     string         `json:"id"`
	Want   string         `json:"want"`
	Schema Text           `json:"schema"`
	Doc    jsontext.Value `json:"doc"` // the document; none: the text
	Text
}

// Document returns the document.
func (s *Schema) Document() []byte {
	if len(s.Doc) > 0 {
		return s.Doc
	}
	return s.Bytes()
}

// A Decision is risk rules, policies, a call, and the right decision.
type Decision struct {
	ID       string           `json:"id"`
	Want     string           `json:"want"`  // allow, or a code
	By       string           `json:"by"`    // the policy that must decide; empty: none matches
	Mode     string           `json:"mode"`  // the risk mode; only with risk rules
	Score    int              `json:"score"` // likewise
	Policies []jsontext.Value `json:"policies"`
	Risk     jsontext.Value   `json:"risk"`
	Call     Call             `json:"call"`
}

// A Call is a call that is decided about. Empty members have the values of the plain world.
type Call struct {
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Env    string         `json:"env"`
	Actor  string         `json:"actor"`
	Now    string         `json:"now"`
	Args   jsontext.Value `json:"args"`
	Hint   *bool          `json:"read_only"`
	Pinned bool           `json:"pinned"`
}

// Load reads a corpus strictly, such as Load[Plan]("plans").
func Load[T any](name string) (all []T, err error) {
	doc, err := files.ReadFile(name + ".jsonl")
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(doc) {
		var c T
		if err := canonical.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("%s.jsonl: case %d: %w", name, len(all)+1, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Document reads a JSON file of the package without its line end: the payloads article and handbook, and the answers to tools/list of
// the plain world's servers kb and desk.
func Document(name string) string {
	doc, err := files.ReadFile(name + ".json")
	if err != nil {
		panic(err) // the file is embedded
	}
	return strings.TrimSpace(string(doc))
}

// PayloadOf returns the payload of a summary.
func (s *Summary) PayloadOf() []byte {
	if len(s.Payload) == 0 {
		return []byte(Document("article"))
	}
	if s.Payload.Kind() == '"' {
		if name, err := canonical.Unquote(s.Payload); err == nil && name == "handbook" {
			return []byte(Document(name))
		}
	}
	return s.Payload
}
