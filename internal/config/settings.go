package config

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/redact"
)

// A Table is an object whose names the operator chooses, in the order of the file.
type Table[V any] []Entry[V]

// An Entry is a name in a [Table] with its value.
type Entry[V any] struct {
	Name  string
	Value V
}

// A Pair is a header or an environment variable.
type Pair = Entry[string]

// UnmarshalJSONFrom reads an object and keeps the order of its members.
func (t *Table[V]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		e := Entry[V]{Name: name.String()}
		if err := json.UnmarshalDecode(dec, &e.Value); err != nil {
			return err
		}
		*t = append(*t, e)
	}
	_, err := dec.ReadToken()
	return err
}

// MarshalJSONTo writes the object.
func (t Table[V]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, e := range t {
		if err := enc.WriteToken(jsontext.String(e.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, e.Value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// index returns the position of a name; -1 if it is not in the table.
func (t Table[V]) index(name string) int {
	for i := range t {
		if t[i].Name == name {
			return i
		}
	}
	return -1
}

// names returns the names of the table.
func (t Table[V]) names() []string {
	out := make([]string, len(t))
	for i := range t {
		out[i] = t[i].Name
	}
	return out
}

// oneOrMany is a text, or a list of texts.
type oneOrMany []string

// UnmarshalJSONFrom reads a text or a list of texts.
func (o *oneOrMany) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '"' {
		return json.UnmarshalDecode(dec, (*[]string)(o))
	}
	*o = make(oneOrMany, 1)
	return json.UnmarshalDecode(dec, &(*o)[0])
}

// allowlistFiles holds the path of the default allowlist file, and the paths for groups.
type allowlistFiles struct {
	Default string
	Groups  Table[string]
}

// UnmarshalJSONFrom reads a single path, or an object with all paths.
func (a *allowlistFiles) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &a.Default)
	}
	type files allowlistFiles
	return json.UnmarshalDecode(dec, (*files)(a))
}

// settings holds the content of pgfsm.yaml, with every default. pgfsm.schema.json describes the
// keys. Times are in milliseconds.
type settings struct {
	Env         string
	Servers     Table[*serverSettings]
	Allowlist   allowlistFiles
	Grants      []string
	Roles       Table[[]string]
	Outputs     Table[Table[string]]
	Ledger      string
	Checkpoints *Checkpoints
	Connections *struct {
		Keys []string
		Idle string
	}

	LedgerRetention int // days

	Identity      identitySettings
	Serve         Serve
	CatalogMaxAge int64

	Input struct {
		Defaults bool
		MaxBytes int
		Deny     []policy.InputRule
	}
	Redact  []redact.Rule
	Planner struct {
		Mode   string
		LLM    *modelSettings
		Routes []policy.Route
	}
	Summary struct{ Mode string }
	Traces  struct{ Dir string }

	Approvals struct {
		Hold, RemindBefore int64
		OnPending          string
		Hooks              []Hook
	}
	Telemetry struct{ OTLP *OTLP }
	Limits    struct {
		PlanBytes, ArgumentsBytes, JSONDepth, ResultBytes int
		RunTimeout                                        int64
		ServerSessions, Held                              int
		Rate                                              *Rate
	}
}

type serverSettings struct {
	Upstream
	Kind, Tools string
	Auth        struct {
		ClientCredentials *ClientCredentials
		Person            *PersonCredentials
	}
	Expose  oneOrMany
	Schemas Table[string]

	ReportWithin Table[int64] // by tool
}

type modelSettings struct {
	policy.LLM
	Timeout int64
}

// configFile is a pgfsm.yaml that was checked against its schema.
type configFile struct {
	*file
	settings
}

const initRemedy = "pgfsm init writes one to begin with"

// parseConfig reads a configuration, without the files that it names. The error is of type
// [Errors].
func parseConfig(name string, text []byte) (*configFile, error) {
	f, err := readJudged(name, text, configSchema(), MaxFileBytes, initRemedy)
	if err != nil {
		return nil, err
	}
	c := &configFile{file: f}
	decode(f.root, &c.settings)
	c.checkParts()
	return c, f.err()
}
