package gateway

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// extensionTasks is the name of the Tasks extension in capabilities.
const extensionTasks = "io.modelcontextprotocol/tasks"

// clientCapabilities holds a client's declaration.
type clientCapabilities struct {
	sampling, samplingContext, samplingTools bool
	elicitation, form, url                   bool
	roots, rootsChanged                      bool
	tasks                                    bool
}

// readCapabilities reads the capabilities of a client. It drops unknown ones, whose messages would
// not pass.
func readCapabilities(doc jsontext.Value) (c clientCapabilities) {
	wire.ForEachMember(doc, func(p wire.Piece) {
		if p.Value.Kind() != '{' {
			return
		}
		declares := func(member string) bool {
			v := wire.Member(p.Value, member)
			return v != nil && v.Kind() != 'n' && v.Kind() != 'f'
		}
		switch p.Name {
		case "sampling":
			c.sampling, c.samplingContext, c.samplingTools = true, declares("context"), declares("tools")
		case "elicitation":
			c.elicitation, c.form, c.url = true, declares("form"), declares("url")
		case "roots":
			c.roots, c.rootsChanged = true, declares("listChanged")
		case "extensions":
			c.tasks = declares(extensionTasks)
		}
	})
	return c
}

// forServer returns the capabilities for a server: those that the operator exposes, in one
// spelling.
func (c clientCapabilities) forServer(server *server) string {
	var b wire.Object
	if c.sampling && server.Expose.Includes(ExposeSampling) {
		var in wire.Object
		in.AddIf(c.samplingContext, "context", `{}`)
		in.AddIf(c.samplingTools, "tools", `{}`)
		b.Add("sampling", in.Value())
	}

	if c.elicitation && server.Expose.Includes(ExposeElicitation) {
		var in wire.Object
		in.AddIf(c.form, "form", `{}`)
		in.AddIf(c.url, "url", `{}`)
		b.Add("elicitation", in.Value())
	}

	if c.roots && server.Expose.Includes(ExposeRoots) {
		var in wire.Object
		in.AddIf(c.rootsChanged, "listChanged", `true`)
		b.Add("roots", in.Value())
	}
	return string(b.Value())
}

// undeclared says why the client cannot answer a question; "" if it can.
func (c clientCapabilities) undeclared(method string, params jsontext.Value) string {
	switch method {
	case "sampling/createMessage":
		if !c.sampling {
			return "the client does not declare sampling"
		}
		if !c.samplingTools && hasMember(params, "tools") {
			return "the client does not declare sampling with tools"
		}
	case "elicitation/create":
		mode := wire.TextMember(params, "mode")
		switch {
		case !c.elicitation:
			return "the client does not declare elicitation"
		case mode == "url" && !c.url:
			return "the client does not declare elicitation of mode url"
		case mode != "url" && c.url && !c.form:
			return "the client does not declare elicitation of mode form"
		}
	case "roots/list":
		if !c.roots {
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
