package gateway

import (
	"bytes"
)

// Names of events. A client that does not know "prime" does nothing with it but remember its id.
const (
	eventMessage  = "message"
	eventPrime    = "prime"
	eventEndpoint = "endpoint"
)

// retryLine asks a client who lost a stream to come back after a second.
const retryLine = "retry: 1000\n"

// beatFrame is a comment: the client's end of a stream hears it and does nothing.
const beatFrame = ": \n\n"

// appendEvent appends one server-sent event (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2).
// Data may have line breaks, which JSON has between tokens only; a carriage return becomes a line feed.
func appendEvent(b []byte, event, id string, data []byte) []byte {
	b = append(append(append(b, "event: "...), event...), '\n')
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if event == eventPrime {
		b = append(b, retryLine...)
	}
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

// appendLine appends a message and the line feed that ends it. Line breaks within, which JSON has between tokens only, become spaces.
func appendLine(b, message []byte) []byte {
	from := len(b)
	b = append(b, message...)
	for i, c := range b[from:] {
		if c == '\n' || c == '\r' {
			b[from+i] = ' '
		}
	}
	return append(b, '\n')
}
