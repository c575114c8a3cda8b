package front

import (
	"bytes"

	"pgfsm/mcp/gateway/session"
)

// retryLine asks a client that lost a stream to come back after a second.
const retryLine = "retry: 1000\n"

// keepAliveFrame is a comment, which clients ignore.
const keepAliveFrame = ": \n\n"

// appendEvent appends one server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2). Each line
// break of the data begins another data field. JSON has line breaks between tokens only.
func appendEvent(b []byte, e session.Event) []byte {
	if b == nil {
		b = make([]byte, 0, len(e.Data)+64)
	}
	b = append(append(append(b, "event: "...), e.Name...), '\n')
	if e.ID != "" {
		b = append(append(append(b, "id: "...), e.ID...), '\n')
	}
	if e.Name == session.EventPrime {
		b = append(b, retryLine...)
	}
	data := e.Data
	for bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		i := bytes.IndexAny(data, "\r\n")
		b = append(append(append(b, "data: "...), data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// appendLine appends a message as one line. Line breaks become spaces: JSON has them between tokens only.
func appendLine(b, message []byte) []byte {
	begin := len(b)
	b = append(b, message...)
	for i, c := range b[begin:] {
		if c == '\n' || c == '\r' {
			b[begin+i] = ' '
		}
	}
	return append(b, '\n')
}
