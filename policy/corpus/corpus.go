// Package corpus has cases with known answers for the gates, once and as data. The test of a gate
// reads its corpus; pgfsm-eval gates reads all of them, and a test of the command takes ten of each
// through whole runs.
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

// A Case is an input of a gate, and the right answer.
//
// Of requests, the answer is that of the input gate: passes, or a code. Requests that must be refused
// come plainly and in the disguises that the default rules claim to recognise; the id names the
// disguise. Of plans, it is that of the strict reader: a type of plan, or a code.
type Case struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	Text
}

// A Run is a plan, or the raw result of a call, the world that it meets, and how the run must end, or
// whether the content of the result is typed or raw.
type Run struct {
	Case
	World string `json:"world"`
}

// A Summary is a summary of a typed payload, and the answer of the evidence gate: locked, or a
// code.
type Summary struct {
	Case
	Payload jsontext.Value `json:"payload"` // a value, or the name of a file of this package; none is article
}

// A Schema is a schema, a document, and the answer of the schema gate: fits, invalid, or the code
// by which the schema or the document is refused.
type Schema struct {
	Case
	Schema Text           `json:"schema"`
	Doc    jsontext.Value `json:"doc"` // the document; none: the text
}

// Document returns the document.
func (s *Schema) Document() []byte {
	if len(s.Doc) > 0 {
		return s.Doc
	}
	return s.Bytes()
}

// A World says how a world differs from the plain one. Content and Request have members of the
// operator's configuration and of the request.
type World struct {
	Content jsontext.Value `json:"content"`
	Request jsontext.Value `json:"request"`
	KB      string         `json:"kb"`   // the answer of the server kb to tools/list
	Edit    [2]string      `json:"edit"` // a piece of that answer, and the piece that takes its place
	Down    bool           `json:"down"` // the server kb does not answer
	// How often the run's task has called the tool fetch_entry of the server kb.
	Before int `json:"before"`
}

// Worlds reads the worlds that runs, outputs and approvals name. The empty name is the plain world.
func Worlds() (map[string]World, error) {
	doc, err := files.ReadFile("worlds.json")
	if err != nil {
		return nil, err
	}
	var worlds map[string]World
	return worlds, canonical.Unmarshal(doc, &worlds)
}

// Page returns the answer of the server kb to tools/list, which is page in the world that this one
// changes.
func (w *World) Page(page string) (string, error) {
	if w.KB != "" {
		page = w.KB
	}
	if !strings.Contains(page, w.Edit[0]) {
		return "", fmt.Errorf("the list of tools does not have %q", w.Edit[0])
	}
	return strings.Replace(page, w.Edit[0], w.Edit[1], 1), nil
}

// An Approval is an approved call that runs in the world "agreed", and how the run must end.
// Everything but ID and Want is a difference from an approval by which the call is made.
type Approval struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	// The configuration of both the approved call and the call that runs.
	Content jsontext.Value   `json:"content"`
	Asked   Asked            `json:"asked"`   // the call that approvers approved
	Votes   []jsontext.Value `json:"votes"`   // members of each vote; none is that of [Quorum]
	Binding string           `json:"binding"` // the binding that the decision names
	Then    World            `json:"then"`    // the world between the decision and the call
}

// Asked is the call that approvers were asked about, as far as it is not the call that runs.
type Asked struct {
	Run  string `json:"run"` // its id
	Plan string `json:"plan"`
	World
}

// Quorum has the votes by which a call is made.
func Quorum() []jsontext.Value {
	return []jsontext.Value{jsontext.Value(`{"by":"bob"}`), jsontext.Value(`{"by":"carol"}`)}
}

// A Decision is risk rules, policies, a call, and the right decision.
type Decision struct {
	ID string `json:"id"`
	// Allow, or a code; the policy that must decide; with risk rules, the risk mode and the score.
	Want     string           `json:"want"`
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

// Load reads a corpus strictly, such as Load[Case]("plans").
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

// Document reads a JSON file of the package without its line end: the payloads article and
// handbook, and the answers to tools/list of the plain world's servers kb and desk.
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
