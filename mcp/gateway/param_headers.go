package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Headers that repeat arguments, from 2026-07-28 on: a tool's schema names them.
const (
	paramPrefix  = "Mcp-Param-"
	paramMark    = "x-mcp-header"
	base64Begins = "=?base64?"
	base64Ends   = "?="
	maxPlain     = 1<<53 - 1 // the largest integer that every reader of a header takes as it is
)

// Bounds of what is looked for in a schema.
const (
	maxParamDepth = 32
	maxParams     = 64
)

// A binding says that an argument is repeated in a header.
type binding struct {
	path   []string
	header string // without its prefix
}

// value is the argument that a binding is about: nil if it is absent or null.
func (b binding) value(arguments jsontext.Value) jsontext.Value {
	for _, name := range b.path {
		if arguments = wire.Member(arguments, name); arguments == nil {
			return nil
		}
	}
	return wire.NonNull(arguments)
}

// bindings are those of a tool, in the order of its schema; none if one of them is not as the protocol wants it, for then no
// client may use the tool over HTTP.
func bindings(tool []byte) []binding {
	if !bytes.Contains(tool, []byte("mcp-header")) && !bytes.Contains(tool, []byte(`\u`)) { // nearly all tools
		return nil
	}
	var schema []byte
	wire.Each(tool, func(p wire.Piece) { // what is no object has no schema
		if p.Name == "inputSchema" {
			schema = p.Value
		}
	})
	found := bindingFinder{seen: make(map[string]bool)}
	found.properties(schema, nil)
	if found.wrong || len(found.all) > maxParams {
		return nil
	}
	return found.all
}

type bindingFinder struct {
	all   []binding
	seen  map[string]bool
	wrong bool
}

// properties looks through the properties of a schema.
func (f *bindingFinder) properties(schema []byte, path []string) {
	if len(path) > maxParamDepth || len(f.all) > maxParams {
		f.wrong = true
		return
	}
	wire.Each(schema, func(p wire.Piece) { // a schema that is no object has no properties
		if p.Name == "properties" {
			wire.Each(p.Value, func(property wire.Piece) { // as above
				f.property(property.Value, append(path[:len(path):len(path)], property.Name))
			})
		}
	})
}

func (f *bindingFinder) property(schema []byte, path []string) {
	var mark []byte
	kind := ""
	wire.Each(schema, func(p wire.Piece) { // a property that is no object says nothing
		switch p.Name {
		case paramMark:
			mark = p.Value
		case "type":
			kind, _ = wire.Text(p.Value)
		}
	})
	if mark != nil {
		name, err := wire.Text(mark)
		plain := kind == "string" || kind == "integer" || kind == "boolean"
		if err != nil || !plain || !isToken(name) || f.seen[strings.ToLower(name)] {
			f.wrong = true
			return
		}
		f.seen[strings.ToLower(name)] = true
		f.all = append(f.all, binding{path, name})
	}
	f.properties(schema, path)
}

// isToken reports whether a name can be that of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// plain is an argument as a header says it; false if no header can.
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

// encoded is a text as the value of a header.
func encodeHeader(s string) string {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(s) != s ||
		strings.HasPrefix(s, base64Begins) && strings.HasSuffix(s, base64Ends)
	if !odd {
		return s
	}
	return base64Begins + base64.StdEncoding.EncodeToString([]byte(s)) + base64Ends
}

// decoded is the text that the value of a header stands for.
func decodeHeader(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, base64Begins)
	if ok {
		inner, ok = strings.CutSuffix(inner, base64Ends)
	}
	if !ok {
		return s, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(b), err == nil
}

// ParamHeader are the headers that repeat arguments of a call, for a server that wants them over HTTP. They are made of the
// arguments that are sent, whatever the client said. tool is the tool object as the server listed it.
func ParamHeader(tool, arguments []byte) map[string]string {
	var header map[string]string
	for _, b := range bindings(tool) {
		v := b.value(arguments)
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

// checkHeader holds the headers that repeat arguments to the arguments. A server whose tools are not known checks nothing: the
// call ends elsewhere.
func (c *toolCall) checkParamHeaders(ctx context.Context) jsontext.Value {
	l, err := c.connect(ctx)
	if err != nil {
		return nil
	}
	kept, err := l.Listing(ctx, c.gateway.options.MaxAge)
	if err != nil {
		return nil
	}
	all := bindings(l.tools.of(kept).tools[c.target])
	seen := func(t Tool) bool { return t.Name == c.target }
	if len(all) > 0 && !slices.ContainsFunc(c.gateway.options.Calls.Tools(kept), seen) {
		return nil // what agents may not see they are told nothing of: the call is refused elsewhere
	}
	for _, b := range all {
		name := paramPrefix + b.header
		sent := c.q.Header.Values(name)
		value := b.value(c.params.arguments)
		switch {
		case len(sent) > 1:
			return invalid(wire.HeaderMismatch, "the header "+name+" came more than once")
		case value == nil && len(sent) > 0 && sent[0] != "":
			return invalid(wire.HeaderMismatch, "the header "+name+" repeats an argument that is not there")
		case value == nil:
			continue
		case len(sent) == 0 || sent[0] == "" && string(value) != `""`:
			return invalid(wire.HeaderMismatch, "the header "+name+" is missing: it repeats an argument")
		}
		said, readable := decodeHeader(sent[0])
		want, sayable := headerValue(value)
		if !readable || !sayable || !sameArgument(said, want, value) {
			return invalid(wire.HeaderMismatch, "the header "+name+" does not say what the argument says")
		}
	}
	return nil
}

// same reports whether a header says what an argument says. Of a number other spellings do.
func sameArgument(said, want string, value jsontext.Value) bool {
	if said == want || value.Kind() != '0' {
		return said == want
	}
	n, err := strconv.ParseFloat(said, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == want
}
