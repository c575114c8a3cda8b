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

// Begin begins another object behind what b holds, in place of the one before.
func (o *Object) Begin(b []byte) { o.b = append(b, '{') }

// Room returns the memory that the object was written to, for another.
func (o *Object) Room() []byte { return o.b[:0] }

// Bytes ends the object and returns it, with what stood before it.
func (o *Object) Bytes() []byte {
	o.b = append(o.b, '}')
	return o.b
}

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
	if quoted, ok := quote(b, s); ok {
		return quoted
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

// quote appends s as canonical JSON if it is plain text, or JSON of plain text. Most of what is recorded is: names, digests, our
// own sentences, what servers send. All else is left to the encoder; then b is returned as it was.
func quote[T string | []byte](b []byte, s T) ([]byte, bool) {
	begin := len(b)
	b = append(b, '"')
	for i := 0; ; i++ {
		end := plainEnd(s, i)
		b = append(b, s[i:end]...)
		if end == len(s) {
			return append(b, '"'), true
		}
		escape := strings.IndexByte(meaning, s[end])
		if escape < 0 {
			return b[:begin], false
		}
		b = append(b, '\\', sameEscapes[escape])
		i = end
	}
}

// plainEnd returns where in s, from i on, the first byte is that does not stand in JSON as it is. It looks at eight at once.
func plainEnd[T string | []byte](s T, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if w := s[i : i+8]; !plainWord(uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56) {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// plainWord looks at eight bytes. The highest bit of each is left set where the byte is above ASCII, below the space, or one
// of three others: x-1&^x has that bit set somewhere if and only if a byte of x is zero, x-n&^x if one is less than n.
func plainWord(w uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash, del := w^each*'"', w^each*'\\', w^each*0x7f
	return (w|(w-each*' ')&^w|(quote-each)&^quote|(backslash-each)&^backslash|(del-each)&^del)&high == 0
}
