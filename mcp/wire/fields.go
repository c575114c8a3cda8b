package wire

import (
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// Fields are what the head of an HTTP/1.1 message has below its first line, spelled as programs spell it. Nearly every head is ordinary in
// this way, and of one that is not nothing is said but that: whoever reads it, reads it with net/http.
type Fields struct {
	Header  http.Header // as net/http would have it: without Host and Transfer-Encoding
	Host    string      // empty: it is not there
	Length  int64       // what Content-Length says; negative: it is not there
	Chunked bool        // the body comes in chunks
}

// usual is how many fields a message usually has at most. It may have more.
const usual = 8

// Read takes the lines of a head, each with its end, and reports whether all of them are ordinary ones. It takes only what net/http takes,
// too, and reads it alike. False: nothing else in f counts.
func (f *Fields) Read(lines string) bool {
	*f = Fields{Header: make(http.Header, usual), Length: -1}
	all := make([]string, 0, usual) // of the values, so that not each has an array of its own
	for lines != "" {
		var line string
		line, lines, _ = strings.Cut(lines, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || !nameBytes.all(name) || !ordinaryValue(value) {
			return false
		}
		name, value = textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
		if !f.frame(name, value) {
			return false
		}
		switch before := f.Header[name]; {
		case name == "Host" || name == "Transfer-Encoding":
		case before == nil:
			all = append(all, value)
			f.Header[name] = all[len(all)-1 : len(all) : len(all)]
		default:
			f.Header[name] = append(before, value)
		}
	}
	return true
}

// frame takes a field that says something about the connection or the body, and reports whether what it says is ordinary.
func (f *Fields) frame(name, value string) bool {
	switch name {
	case "Host":
		once := f.Host == ""
		f.Host = value
		return once && value != "" && hostBytes.all(value)
	case "Content-Length":
		once := f.Length < 0
		f.Length = length(value)
		return once && f.Length >= 0 && !f.Chunked
	case "Transfer-Encoding":
		once := !f.Chunked
		f.Chunked = true
		return once && value == "chunked" && f.Length < 0
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Expect", "Trailer", "Upgrade":
		return false
	}
	return true
}

// maxDigits bounds the digits of a length that is ordinary.
const maxDigits = 10

// length reads the value of a Content-Length field; negative: it is not ordinary.
func length(value string) (n int64) {
	if value == "" || len(value) > maxDigits {
		return -1
	}
	for _, c := range []byte(value) {
		if !digit(c) {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// A set of bytes.
type byteSet [256]bool

// letters are the letters and digits of ASCII, and what else is given.
func letters(more string) (s byteSet) {
	for c := range len(s) {
		s[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c < utf8.RuneSelf && strings.IndexByte(more, byte(c)) >= 0
	}
	return s
}

// What is ordinary. Space in front of a name, by which a line goes on with the one before, is not.
var (
	hostBytes = letters("-._:[]")
	nameBytes = letters("-_")
	pathBytes = letters("/-._~")
)

// all reports whether a text has no other bytes.
func (s *byteSet) all(text string) bool {
	for i := range len(text) {
		if !s[text[i]] {
			return false
		}
	}
	return true
}

// OrdinaryPath reports whether the target of a request is a path that has one spelling.
func OrdinaryPath(target string) bool {
	return strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "//") && pathBytes.all(target)
}

// ordinaryValue reports whether a field's value is plain text of one line.
func ordinaryValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
