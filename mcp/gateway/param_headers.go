package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/front"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// Headers that repeat arguments, from 2026-07-28 on. The schema of a tool names them.
const (
	paramPrefix  = "Mcp-Param-"
	paramMark    = "x-mcp-header"
	base64Begins = "=?base64?"
	base64Ends   = "?="
	maxPlain     = 1<<53 - 1 // the largest integer that all readers of a header read exactly

	maxParams     = 64 // headers of one tool
	maxParamDepth = 32
)

// A binding is an argument that a header repeats.
type binding struct {
	path   []string
	header string // name without paramPrefix
}

// argumentOf returns the argument; nil if it is absent or null.
func (b binding) argumentOf(arguments jsontext.Value) jsontext.Value {
	for _, name := range b.path {
		if arguments = wire.Member(arguments, name); arguments == nil {
			return nil
		}
	}
	return wire.NonNull(arguments)
}

// bindingsOf returns the bindings of a tool, in the order of its schema. If one is
// invalid, it returns none, because then no client may use the tool over HTTP.
func bindingsOf(tool []byte) (found []binding) {
	// Nearly all tools.
	if !bytes.Contains(tool, []byte("mcp-header")) && !bytes.Contains(tool, []byte(`\u`)) {
		return nil
	}

	names := make(map[string]bool)
	wrong := false
	var search func(schema []byte, path []string)
	search = func(schema []byte, path []string) {
		if wrong = wrong || len(path) > maxParamDepth; wrong {
			return
		}
		wire.ForEachMember(wire.Member(schema, "properties"), func(property wire.Piece) {
			sub := append(path[:len(path):len(path)], property.Name)
			if mark := wire.Member(property.Value, paramMark); mark != nil {
				name, err := wire.Text(mark)
				kind := wire.TextMember(property.Value, "type")
				plain := kind == "string" || kind == "integer" || kind == "boolean"
				wrong = wrong || err != nil || !plain || !upstream.IsToken(name) || names[strings.ToLower(name)] ||
					len(found) == maxParams
				names[strings.ToLower(name)] = true
				found = append(found, binding{sub, name})
			}
			search(property.Value, sub)
		})
	}

	search(wire.Member(tool, "inputSchema"), nil)
	if wrong {
		return nil
	}

	return found
}

// headerValue returns an argument as the value of a header; false if it cannot be one.
func headerValue(value jsontext.Value) (string, bool) {
	switch value.Kind() {
	case '"':
		s, err := wire.Text(value)
		return s, err == nil
	case 't', 'f':
		return string(value), true
	case '0':
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil || n != float64(int64(n)) || n > maxPlain || n < -maxPlain {
			return "", false
		}
		return strconv.FormatInt(int64(n), 10), true
	}
	return "", false
}

// encodeHeader returns a text as the value of a header.
func encodeHeader(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(s) != s ||
		strings.HasPrefix(s, base64Begins) && strings.HasSuffix(s, base64Ends)
	if !odd {
		return s
	}
	return base64Begins + base64.StdEncoding.EncodeToString([]byte(s)) + base64Ends
}

// ParamHeader returns the headers for a server over HTTP. It makes them from the arguments that are
// sent and ignores the client's headers. tool is the object that the server listed.
func ParamHeader(tool, arguments []byte) map[string]string {
	var header map[string]string
	for _, b := range bindingsOf(tool) {
		v := b.argumentOf(arguments)
		if v == nil {
			continue
		}
		if s, ok := headerValue(v); ok {
			if header == nil {
				header = make(map[string]string)
			}
			header[paramPrefix+b.header] = encodeHeader(s)
		}
	}
	return header
}

// checkParamHeaders compares the client's headers with the arguments. If the server's tools are
// unknown, Calls rejects the call.
func (c *ToolCall) checkParamHeaders(ctx context.Context) jsontext.Value {
	listing, err := c.serverListing(ctx)

	// The server has lost the session: try the next link, as Calls would.
	if err != nil && c.link != nil && c.link.Retired() {
		listing, err = c.serverListing(ctx)
	}

	if err != nil {
		return nil
	}

	tools := c.request.config().Calls.Tools(listing, c.request.Identity)
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.Tool })
	if i < 0 {
		return nil // reveals nothing about a hidden tool: Calls rejects the call
	}

	// The tool as the client saw it, with the operator's schema if there is one.
	for _, b := range bindingsOf(tools[i].Raw) {
		name := paramPrefix + b.header
		sent := c.request.Header.Values(name)
		value := b.argumentOf(c.Arguments)
		switch {
		case len(sent) > 1:
			return front.HeaderMismatch("the header " + name + " came more than once")
		case value == nil && len(sent) > 0 && sent[0] != "":
			return front.HeaderMismatch("the header " + name + " repeats an argument that is not there")
		case value == nil:
			continue
		case len(sent) == 0 || sent[0] == "" && string(value) != `""`:
			return front.HeaderMismatch("the header " + name + " is missing: it repeats an argument")
		}
		header, readable := front.DecodeHeader(sent[0])
		want, ok := headerValue(value)
		if !readable || !ok || !sameArgument(header, want, value) {
			return front.HeaderMismatch("the header " + name + " does not say what the argument says")
		}
	}

	return nil
}

// serverListing returns the tools of the call's server.
func (c *ToolCall) serverListing(ctx context.Context) (*upstream.CachedListing, error) {
	l, err := c.connectLink(ctx)
	if err != nil {
		return nil, err
	}
	return l.Listing(ctx, c.request.config().MaxAge)
}

// sameArgument reports whether a header has the value of an argument. Two spellings of a number are
// the same.
func sameArgument(header, want string, value jsontext.Value) bool {
	if header == want || value.Kind() != '0' {
		return header == want
	}
	n, err := strconv.ParseFloat(header, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == want
}
