package naive

import (
	"bytes"
	stdjson "encoding/json" // the lenient decoder that agents use: the last of two members counts, and case does not

	"github.com/go-json-experiment/json/jsontext"
)

// A plan is what is looked for in the words of a model.
type plan struct {
	Server string             `json:"server"`
	Tool   string             `json:"tool"`
	Args   stdjson.RawMessage `json:"args"`
}

// firstCall takes the first JSON object out of a text, wherever it stands and whatever stands around it, and reports
// whether it names a tool. A later object is not looked at.
func firstCall(text []byte) (plan, bool) {
	for rest := text; ; {
		open := bytes.IndexByte(rest, '{')
		if open < 0 {
			return plan{}, false
		}
		rest = rest[open:]
		var object stdjson.RawMessage
		if stdjson.NewDecoder(bytes.NewReader(rest)).Decode(&object) == nil {
			var p plan
			err := stdjson.Unmarshal(object, &p)
			return p, err == nil && p.Tool != ""
		}
		rest = rest[1:]
	}
}

// args are the arguments as they were written; {} where there are none.
func (p plan) args() jsontext.Value {
	if len(p.Args) == 0 || string(p.Args) == "null" {
		return jsontext.Value("{}")
	}
	return jsontext.Value(p.Args)
}
