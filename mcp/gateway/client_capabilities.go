package gateway

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// refuses says why the client cannot be asked; empty if it can.
func (a clientCapabilities) cannotAnswer(method string, params jsontext.Value) string {
	switch method {
	case "sampling/createMessage":
		if !a.sampling {
			return "the client does not declare sampling"
		}
		if !a.samplingTools && hasMember(params, "tools") {
			return "the client does not declare sampling with tools"
		}
	case "elicitation/create":
		mode := wire.TextMember(params, "mode")
		switch {
		case !a.elicitation:
			return "the client does not declare elicitation"
		case mode == "url" && !a.url:
			return "the client does not declare elicitation of mode url"
		case mode != "url" && a.url && !a.form:
			return "the client does not declare elicitation of mode form"
		case hasReference(params):
			return "its schema refers to other schemas, and clients that follow it may not come back"
		}
	case "roots/list":
		if !a.roots {
			return "the client does not declare roots"
		}
	}
	return ""
}

// abilities are what a client says that it can do for servers.
type clientCapabilities struct {
	sampling, samplingContext, samplingTools bool
	elicitation, form, url                   bool
	roots, rootsChanged                      bool
	tasks                                    bool
}

// opens reports whether the client can have a person open a URL.
func (a clientCapabilities) showsURLs() bool { return a.elicitation && a.url }

// told is what a server hears of the client's capabilities: those that are exposed, in one spelling.
func (a clientCapabilities) forServer(e Expose) jsontext.Value {
	var b wire.Object
	if a.sampling && e.Has(ExposeSampling) {
		var in wire.Object
		in.AddIf(a.samplingContext, "context", `{}`)
		in.AddIf(a.samplingTools, "tools", `{}`)
		b.Add("sampling", in.Done())
	}
	if a.elicitation && e.Has(ExposeElicitation) {
		var in wire.Object
		in.AddIf(a.form, "form", `{}`)
		in.AddIf(a.url, "url", `{}`)
		b.Add("elicitation", in.Done())
	}
	if a.roots && e.Has(ExposeRoots) {
		var in wire.Object
		in.AddIf(a.rootsChanged, "listChanged", `true`)
		b.Add("roots", in.Done())
	}
	return b.Done()
}

// readAbilities reads the client's capabilities. What is not known is not kept: nothing of it is passed on.
func readClientCapabilities(doc jsontext.Value) (a clientCapabilities) {
	wire.Each(doc, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if value.Kind() != '{' {
			return
		}
		part := func(member string) bool {
			v := wire.Member(value, member)
			return v != nil && v.Kind() != 'n' && v.Kind() != 'f'
		}
		switch name {
		case "sampling":
			a.sampling, a.samplingContext, a.samplingTools = true, part("context"), part("tools")
		case "elicitation":
			a.elicitation, a.form, a.url = true, part("form"), part("url")
		case "roots":
			a.roots, a.rootsChanged = true, part("listChanged")
		case "extensions":
			a.tasks = part(extensionTasks)
		}
	})
	return a
}

// has reports whether an object of a server has a member that is not null.
func hasMember(doc []byte, member string) (found bool) {
	wire.Each(doc, func(p wire.Piece) { found = found || p.Name == member && string(p.Value) != "null" }) // what cannot be read has none
	return found
}

// refers reports whether there is a reference of JSON Schema anywhere in an elicitation. The protocol has none there: its schemas
// are flat. Names are compared as they are decoded.
func hasReference(params jsontext.Value) bool {
	if len(params) == 0 {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end: that it is JSON was seen before
		}
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 && token.Kind() == '"' {
			switch token.String() {
			case "$ref", "$dynamicRef", "$recursiveRef":
				return true
			}
		}
	}
}
