package upstream

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// incoming is one JSON-RPC 2.0 message of a server: one object, no member of JSON-RPC twice, and in
// a response an id that is one of ours. There are no batches, which MCP dropped in 2025-06-18. The
// values are slices of the message. The inside of a result or an error is UTF-8, and may have more
// than one reading: then Members is nil.
type incoming struct {
	wire.Message
	id     int64     // id of a response
	failed *RPCError // the error in a response; nil for a result
	// A request or notification that is dropped: it has more than one reading, or JSON-RPC does not
	// know it.
	unfit bool
	taken chan struct{} // closed when the message is taken from an inbox; nil: nobody waits for that
}

// readIncoming reads one message: strictly, as nearly all are, or else with what servers are allowed.
func readIncoming(doc []byte) (msg incoming, err error) {
	m, err := wire.Read(doc)
	switch {
	case err != nil, m.Method != "" && m.Params == nil: // its params may be null
		return readLeniently(doc)
	case m.Method != "":
		return incoming{Message: m}, nil
	}
	msg.Message = m
	return msg, msg.checkResponse()
}

// readLeniently reads one message that has more than one reading, or members that JSON-RPC does not
// know.
func readLeniently(doc []byte) (msg incoming, err error) {
	var version, method jsontext.Value
	err = readMembers(doc, map[string]*jsontext.Value{
		"jsonrpc": &version,
		"id":      &msg.ID,
		"method":  &method,
		"params":  &msg.Params,
		"result":  &msg.Result,
		"error":   &msg.Error,
	})
	if err != nil {
		return msg, err
	}
	if method == nil && !utf8.Valid(doc) { // checkMembers checks requests and notifications
		return msg, errors.New("it is not UTF-8")
	}
	return msg, msg.checkMembers(doc, version, method)
}

// checkMembers checks the members together.
func (msg *incoming) checkMembers(doc []byte, version, method jsontext.Value) (err error) {
	if string(version) != `"2.0"` {
		return errors.New(`"jsonrpc" is not "2.0"`)
	}
	if method != nil {
		if msg.Method, err = wire.Text(method); err != nil {
			return fmt.Errorf(`"method": %w`, err)
		}
		if msg.Result != nil || msg.Error != nil {
			return errors.New("it is a request and a response at once")
		}
		if len(msg.ID) > wire.MaxID {
			return fmt.Errorf("the id of its request is longer than %d bytes", wire.MaxID)
		}
		// Wire reads null as absent params, as clients mean it.
		if _, err := wire.Read(doc); err != nil || msg.Params.Kind() == 'n' {
			msg.unfit = true
		}
		return nil
	}
	if (msg.Result == nil) == (msg.Error == nil) {
		return errors.New("it is neither a request nor a response: one of method, result and error must be there")
	}
	return msg.checkResponse()
}

// checkResponse reads the error and the id of a response.
func (msg *incoming) checkResponse() (err error) {
	if msg.Error != nil {
		if msg.failed, err = readError(msg.Error); err != nil {
			return fmt.Errorf(`"error": %w`, err)
		}
	}

	if msg.id, err = plainID(msg.ID); err != nil && msg.failed != nil {
		err = fmt.Errorf("%w; its error is %d %q", err, msg.failed.Code, msg.failed.Message)
	}

	return err
}

// readMessage reads a message. An unreadable message ends the link.
func (l *Link) readMessage(doc []byte) (incoming, *fault) {
	msg, err := readIncoming(doc)
	if err != nil {
		if l.up.server.Type == TypeStdio {
			return msg, l.fail(CodeProtocol,
				"it wrote a line to standard output that is not a JSON-RPC message: %v; it must write anything else to standard error", err)
		}
		return msg, l.fail(CodeProtocol, "it sent what is not a JSON-RPC message: %v", err)
	}
	return msg, nil
}
