package front

import (
	"slices"

	"pgfsm/mcp/gateway/session"
)

// retryLine asks a client that lost a stream to come back after a second.
const retryLine = "retry: 1000\n"

// keepAliveFrame is a comment, which clients ignore.
const keepAliveFrame = ": \n\n"

// appendEvent appends one server-sent event
// (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2).
func appendEvent(b []byte, e session.Event) []byte {
	b = slices.Grow(b, len(e.Data)+64)
	b = append(append(append(b, "event: "...), e.Name...), '\n')
	if e.ID != "" {
		b = append(append(append(b, "id: "...), e.ID...), '\n')
	}
	if e.Name == session.EventPrime {
		b = append(b, retryLine...)
	}
	return append(appendLine(append(b, "data: "...), e.Data), '\n')
}

// appendLine appends a message as one line. Line breaks become spaces: JSON has them between tokens
// only.
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
