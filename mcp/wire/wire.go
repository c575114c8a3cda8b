// Package wire reads and writes the JSON-RPC messages of MCP as they travel: strictly, once, and
// without decoding what they carry.
//
//	m, err := wire.Read(body)                  // one message, or a *Fault that can be answered with
//	tool := wire.Member(m.Params, "name")      // raw
//	out := wire.Response(nil, m.ID, result)    // spliced: the result's bytes are not touched
//
// A message has one reading. Names that come twice at any depth, broken UTF-8, text behind the
// message, an envelope member that JSON-RPC 2.0 does not know, an id that is neither a string nor
// an integer, and batches (which MCP had in one revision only) are faults. Ids, params, results and
// errors stay as they came, byte for byte: they are slices of the message that was read.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Bounds of a message beside its size.
const (
	MaxDepth  = 256 // levels of nesting
	MaxID     = 256 // bytes of an id
	MaxMethod = 128 // bytes of a method's name

	// MaxValues bounds the values of a message: members and elements at every depth. The strict
	// reader needs memory for each name.
	MaxValues = 50_000
)

// Error codes of JSON-RPC 2.0 and of MCP.
const (
	ParseError         = -32700
	InvalidRequest     = -32600
	MethodNotFound     = -32601
	InvalidParams      = -32602
	InternalError      = -32603
	HeaderMismatch     = -32020 // MCP 2026-07-28: a header differs from the body
	MissingCapability  = -32021 // MCP 2026-07-28: the client did not declare a capability
	UnsupportedVersion = -32022 // MCP 2026-07-28
)

// A Message is one request, notification or response. All values are slices of the bytes that were
// read.
type Message struct {
	ID     jsontext.Value // a string or an integer; nil in a notification
	Method string         // empty in a response
	Params jsontext.Value // an object, or nil
	Result jsontext.Value // a response's result, any value; or nil
	Error  jsontext.Value // a response's error object, or nil

	// Members are those of Params or of Result, read with the message; nil if that is no object.
	Members []Piece

	// Large says that the message is a request with more than MaxValues values. Only its envelope
	// was read strictly: names inside of Params may repeat. It must be refused. A refused call of a
	// tool is recorded; other such messages are faults.
	Large bool
}

// InnerMembers returns the members of Params or of Result, also of a message that was not read but
// made.
func (m *Message) InnerMembers() []Piece {
	if m.Members != nil {
		return m.Members
	}
	var members []Piece
	ForEachMember(slices.Concat(m.Params, m.Result), func(p Piece) { members = append(members, p) })
	return members
}

// Request reports whether the message wants an answer.
func (m *Message) Request() bool { return m.Method != "" && m.ID != nil }

// Notification reports whether the message is a notification.
func (m *Message) Notification() bool { return m.Method != "" && m.ID == nil }

// Response reports whether the message is an answer.
func (m *Message) Response() bool { return m.Method == "" }

// A Fault is the reason for refusing a message. Code is the JSON-RPC code of
// the answer. ID is the request's id, or nil if [IDFinder] finds none.
type Fault struct {
	Code   int64
	ID     jsontext.Value
	Reason string
}

func (f *Fault) Error() string { return f.Reason }

// Read reads one message. The error is a [*Fault].
func Read(doc []byte) (Message, error) {
	m, err := readMessage(doc)
	if err != nil {
		return Message{}, newFault(doc, err)
	}
	return m, nil
}

// newFault returns the fault for an error of readMessage.
func newFault(doc []byte, err error) *Fault {
	f := &Fault{Code: InvalidRequest, Reason: err.Error()}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, errDepth) {
		f.Code, f.Reason = ParseError, "it is not one JSON value: "+Reason(doc, err)
	}
	var id IDFinder
	_, _ = id.Write(doc) // Write returns no error
	f.ID = id.ID()
	return f
}

// Reason describes an error of reading doc. It quotes nothing of doc if the error is one of syntax.
func Reason(doc []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return err.Error()
	}
	problem, remainder := "", doc[min(int(syntax.ByteOffset), len(doc)):]
	switch r, size := utf8.DecodeRune(remainder); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		problem = " a name comes twice"
	case halfPair.Match(remainder):
		problem = " a string has half of a surrogate pair"
	case r == utf8.RuneError && size == 1:
		problem = " it is not UTF-8"
	}
	return fmt.Sprintf("at byte %d", syntax.ByteOffset) + problem
}

// halfPair matches an escaped surrogate. A syntax error is at one only if the other half of the
// pair is missing.
var halfPair = regexp.MustCompile(`^\\u[dD][89a-fA-F]`)

// readMessage reads one message strictly.
func readMessage(doc []byte) (m Message, err error) {
	values, depth := canonical.Outline(doc)
	if depth > MaxDepth { // readers recurse, so depth is bounded
		return m, errDepth
	}

	// The strict reader needs memory for each name. Of a large message only the envelope is strict.
	r := &messageReader{Message: Message{Large: values > MaxValues}}
	err = readMembers(doc, r.readMember, r.inside, jsontext.AllowDuplicateNames(r.Large))
	if err != nil {
		return m, err
	}

	m = r.Message
	switch {
	case m.Large && !m.Request():
		return m, ErrLarge
	case string(r.version) != `"2.0"`:
		return m, errors.New(`"jsonrpc" is not "2.0"`)
	case m.ID != nil && checkID(m.ID) != nil:
		return m, checkID(m.ID)
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return m, errors.New("it is a request and a response at once")
	case m.Method == "" && m.Params != nil:
		return m, errors.New("it has params and no method")
	case m.Method == "" && (m.Result == nil) == (m.Error == nil):
		return m, errors.New("it is neither a request nor a response: one of method, result and error must be there")
	}

	return m, nil
}

// A messageReader holds a message while it is read.
type messageReader struct {
	Message
	version jsontext.Value
	seen    []string // names in the envelope of a large message
}

// inside says where the members of the params or of the result go.
func (m *messageReader) inside(name string) *[]Piece {
	if name == "params" || name == "result" {
		return &m.Members
	}
	return nil
}

// readMember reads one member of the envelope.
func (m *messageReader) readMember(name string, value jsontext.Value) error {
	if m.Large {
		if slices.Contains(m.seen, name) {
			return errors.New("it has a member twice")
		}
		m.seen = append(m.seen, name)
	}

	switch name {
	case "jsonrpc":
		m.version = value
	case "id":
		m.ID = value
	case "method":
		method, err := Text(value)
		if err != nil || method == "" || len(method) > MaxMethod {
			return fmt.Errorf(`"method" is not a string of 1 to %d bytes`, MaxMethod)
		}
		m.Method = method
	case "params":
		if value.Kind() != '{' && value.Kind() != 'n' {
			return errors.New(`"params" is not an object`)
		}
		m.Params = NonNull(value) // Go clients send null for absent params
	case "result":
		m.Result = value
	case "error":
		if value.Kind() != '{' {
			return errors.New(`"error" is not an object`)
		}
		m.Error = value
	default:
		return errors.New("it has a member that JSON-RPC does not know")
	}
	return nil
}

// checkID refuses an id that is neither a string nor an integer without a fraction or exponent.
func checkID(id jsontext.Value) error {
	if len(id) > 0 && len(id) <= MaxID {
		switch id.Kind() {
		case '"':
			return nil
		case '0':
			if !bytes.ContainsAny(id, ".eE") {
				return nil
			}
		}
	}
	return fmt.Errorf(`"id" is not a string or an integer of at most %d bytes`, MaxID)
}

// ErrLarge means that a message has more than [MaxValues] values.
var ErrLarge = fmt.Errorf("it has more than %d values", MaxValues)

var errDepth = fmt.Errorf("it is nested deeper than %d levels", MaxDepth)
