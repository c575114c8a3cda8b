package canonical

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// An Object writes one JSON object in canonical form without reflection: what is recorded at every step of every run is
// written this way. The caller names the members in canonical order and gives raw values that are canonical; a test
// holds every type that is written so to [Marshal].
type Object struct{ b []byte }

// NewObject begins an object behind what b holds.
func NewObject(b []byte) *Object { return &Object{append(b, '{')} }

// Bytes ends the object and returns it.
func (o *Object) Bytes() []byte { return append(o.b, '}') }

func (o *Object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

// Text writes a string. What is not UTF-8 in it becomes U+FFFD: a record never fails for what somebody else wrote.
func (o *Object) Text(name, value string) {
	o.name(name)
	o.b = AppendText(o.b, value)
}

// Digest writes a digest.
func (o *Object) Digest(name string, value Digest) { o.Text(name, string(value)) }

// Int writes a number.
func (o *Object) Int(name string, value int) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, int64(value), 10)
}

// Bool writes true or false.
func (o *Object) Bool(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

// Raw writes a canonical value; an empty one is null.
func (o *Object) Raw(name string, value []byte) {
	o.name(name)
	if len(value) == 0 {
		value = null
	}
	o.b = append(o.b, value...)
}

var null = []byte("null")

// Outside writes bytes from outside in their one spelling; see [Text].
func (o *Object) Outside(name string, value Text) {
	o.name(name)
	o.b = value.append(o.b)
}

// Object writes an object whose members write writes.
func (o *Object) Object(name string, write func(*Object)) {
	o.name(name)
	o.item(write)
}

func (o *Object) item(write func(*Object)) {
	o.b = append(o.b, '{')
	write(o)
	o.b = append(o.b, '}')
}

// Objects writes a list of n objects; write writes the members of the ith.
func (o *Object) Objects(name string, n int, write func(o *Object, i int)) {
	o.list(name, n, func(i int) { o.item(func(o *Object) { write(o, i) }) })
}

// Outsides writes a list of bytes from outside.
func (o *Object) Outsides(name string, values []Text) {
	o.list(name, len(values), func(i int) { o.b = values[i].append(o.b) })
}

// Texts writes a list of strings.
func (o *Object) Texts(name string, values []string) {
	o.list(name, len(values), func(i int) { o.b = AppendText(o.b, values[i]) })
}

func (o *Object) list(name string, n int, write func(int)) {
	o.name(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		write(i)
	}
	o.b = append(o.b, ']')
}

// AppendText appends a string as canonical JSON.
func AppendText(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		panic("canonical: valid UTF-8 that cannot be quoted: " + err.Error())
	}
	return b
}

// plain reports whether s stands in JSON as it is. Most of what is recorded does: names, digests, our own sentences.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
