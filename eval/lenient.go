package eval

import (
	"bytes"
	// The lenient decoder that agents use: the last of two members counts, and case does not.
	stdjson "encoding/json"
)

// A LooseCall is a call as agents without a strict reader take it out of a planner's output.
type LooseCall struct {
	Server string             `json:"server"`
	Tool   string             `json:"tool"`
	Args   stdjson.RawMessage `json:"args"`
}

// FirstCall takes the first JSON object out of a text, wherever it is, and reports whether it names
// a tool.
func FirstCall(text []byte) (c LooseCall, ok bool) {
	for open := bytes.IndexByte(text, '{'); open >= 0; open = bytes.IndexByte(text, '{') {
		text = text[open:]
		var object stdjson.RawMessage
		if stdjson.NewDecoder(bytes.NewReader(text)).Decode(&object) == nil {
			err := stdjson.Unmarshal(object, &c)
			if len(c.Args) == 0 || string(c.Args) == "null" {
				c.Args = stdjson.RawMessage("{}")
			}
			return c, err == nil && c.Tool != ""
		}
		text = text[1:]
	}
	return LooseCall{}, false
}
