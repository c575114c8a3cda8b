package gateway

import (
	"bytes"
	"strings"

	"pgfsm/mcp/wire"
)

// An opening is the head of an ordinary request: a POST of HTTP/1.1 with a body whose length is said, spelled as programs spell it. Nearly
// all requests have one. What is not ordinary here is not wrong: net/http reads it, see [express].
type opening struct {
	wire.Fields
	path string
}

// read takes the opening that text begins with, and says how long it is with the blank line behind it. It takes only what net/http's server
// takes, too, and reads it alike. Zero: it is not whole, or not ordinary.
func (o *opening) read(text []byte) int {
	const blank = "\r\n\r\n"
	end := bytes.Index(text, []byte(blank))
	if end < 0 {
		return 0
	}
	line, rest, _ := strings.Cut(string(text[:end+len("\r\n")]), "\r\n")
	path, post := strings.CutPrefix(line, "POST ")
	path, modern := strings.CutSuffix(path, " HTTP/1.1")
	if !post || !modern || !wire.OrdinaryPath(path) || !o.Read(rest) || o.Host == "" || o.Length < 0 {
		return 0
	}
	o.path = path
	return end + len(blank)
}
