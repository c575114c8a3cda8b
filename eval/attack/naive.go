package attack

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
)

// maxBraces bounds the opening braces of a planner's output that are tried as the beginning of a call.
const maxBraces = 64

// naive calls tools like an agent without gates. It takes the first JSON object in the planner's output, as lenient decoders
// do (the last of two members of one name, names in any case, bytes that are no UTF-8). If the output is no JSON, it takes
// the call that it can scrape out of the text. It makes the call if there is such a tool.
func naive(tools *eval.Tools, c *eval.Call) CallResult {
	server, tool := c.Server, c.Tool
	if c.Plan != nil {
		server, tool = lenient(*c.Plan)
		if !tools.Lists(server, tool) {
			server, tool = scrape(*c.Plan)
		}
	}
	if !tools.Lists(server, tool) {
		return CallResult{Code: codeUnlisted}
	}
	return CallResult{Made: true}
}

// codeUnlisted is the code if the naive agent makes no call: there is no such tool, or the output has no call.
const codeUnlisted = "no_such_tool"

// lenient finds the server and the tool of the first object in a text.
func lenient(text []byte) (server, tool string) {
	options := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), json.MatchCaseInsensitiveNames(true))
	for range maxBraces {
		at := bytes.IndexByte(text, '{')
		if at < 0 {
			return "", ""
		}
		text = text[at:]
		value, err := jsontext.NewDecoder(bytes.NewReader(text), options).ReadValue()
		if err == nil {
			var call struct{ Server, Tool string }
			if json.Unmarshal(value, &call, options) == nil {
				return call.Server, call.Tool
			}
		}
		text = text[1:]
	}
	return "", ""
}
