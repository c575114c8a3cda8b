package serverrequest

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// ExtensionTasks is the name of the Tasks extension in capabilities.
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// Capabilities holds a client's declaration.
type Capabilities struct {
	Sampling, SamplingContext, SamplingTools bool
	Elicitation, Form, URL                   bool
	Roots, RootsChanged                      bool
	Tasks                                    bool
}

// ShowsURLs reports whether the client can have its user open a URL.
func (c Capabilities) ShowsURLs() bool { return c.Elicitation && c.URL }

// ReadCapabilities reads the capabilities of a client. It drops unknown ones, whose messages would not pass.
func ReadCapabilities(doc jsontext.Value) (c Capabilities) {
	wire.ForEachMember(doc, func(p wire.Piece) {
		if p.Value.Kind() != '{' {
			return
		}
		has := func(member string) bool {
			v := wire.Member(p.Value, member)
			return v != nil && v.Kind() != 'n' && v.Kind() != 'f'
		}
		switch p.Name {
		case "sampling":
			c.Sampling, c.SamplingContext, c.SamplingTools = true, has("context"), has("tools")
		case "elicitation":
			c.Elicitation, c.Form, c.URL = true, has("form"), has("url")
		case "roots":
			c.Roots, c.RootsChanged = true, has("listChanged")
		case "extensions":
			c.Tasks = has(ExtensionTasks)
		}
	})
	return c
}

// ForServer returns the capabilities for a server: those that the operator exposes, in one spelling.
func (c Capabilities) ForServer(sampling, elicitation, roots bool) jsontext.Value {
	var b wire.Object
	if c.Sampling && sampling {
		var in wire.Object
		in.AddIf(c.SamplingContext, "context", `{}`)
		in.AddIf(c.SamplingTools, "tools", `{}`)
		b.Add("sampling", in.Value())
	}

	if c.Elicitation && elicitation {
		var in wire.Object
		in.AddIf(c.Form, "form", `{}`)
		in.AddIf(c.URL, "url", `{}`)
		b.Add("elicitation", in.Value())
	}

	if c.Roots && roots {
		var in wire.Object
		in.AddIf(c.RootsChanged, "listChanged", `true`)
		b.Add("roots", in.Value())
	}
	return b.Value()
}

// Lacks says why the client cannot answer a question; "" if it can.
func (c Capabilities) Lacks(method string, params jsontext.Value) string {
	switch method {
	case "sampling/createMessage":
		if !c.Sampling {
			return "the client does not declare sampling"
		}
		if !c.SamplingTools && hasMember(params, "tools") {
			return "the client does not declare sampling with tools"
		}
	case "elicitation/create":
		mode := wire.TextMember(params, "mode")
		switch {
		case !c.Elicitation:
			return "the client does not declare elicitation"
		case mode == "url" && !c.URL:
			return "the client does not declare elicitation of mode url"
		case mode != "url" && c.URL && !c.Form:
			return "the client does not declare elicitation of mode form"
		case hasReference(params):
			return "its schema refers to other schemas, and clients that follow it may not come back"
		}
	case "roots/list":
		if !c.Roots {
			return "the client does not declare roots"
		}
	}
	return ""
}

// hasMember reports whether an object has a member that is not null.
func hasMember(doc []byte, member string) (found bool) {
	wire.ForEachMember(doc, func(p wire.Piece) { found = found || p.Name == member && string(p.Value) != "null" })
	return found
}

// hasReference reports whether an elicitation has a JSON Schema reference anywhere. The schemas of the protocol have none.
func hasReference(params jsontext.Value) bool {
	if len(params) == 0 {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end of the params: package upstream has checked that they are JSON
		}
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 && token.Kind() == '"' {
			switch token.String() {
			case "$ref", "$dynamicRef", "$recursiveRef":
				return true
			}
		}
	}
}
