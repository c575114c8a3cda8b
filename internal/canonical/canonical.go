// Package canonical reads JSON strictly, writes it in canonical form, and computes digests of it.
//
// # Reading
//
// [Check] accepts exactly one RFC 8259 value in valid UTF-8: no duplicate member name at any depth,
// no lone surrogate, no byte order mark, no NaN, nothing behind the value, and nesting no deeper
// than the caller allows. Every document that crosses a trust boundary is checked before other code
// reads it.
//
// # Writing
//
// [JSON] and [Marshal] write the canonical form of RFC 8785 with one exception: a number keeps its
// literal. RFC 8785 converts numbers to IEEE 754 doubles, so 9007199254740993 and 9007199254740992
// would have the same digest, and an approval of one would be an approval of the other.
//
// # Digests
//
// [Sum] is SHA-256 over a kind, a zero byte and the canonical bytes, so values of different kinds
// never share a digest. A [Digest] is written as "sha256:" and 64 lower-case hexadecimal digits.
package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the nesting that [Check] allows when the caller asks for none or for more: the depth
// at which the decoder itself gives up.
const MaxDepth = 1000

// ErrTooDeep means that a document nests deeper than the caller allows.
var ErrTooDeep = errors.New("JSON nests too deep")

// ErrTrailing means that something other than white space follows the JSON value.
var ErrTrailing = errors.New("there is text behind the JSON value")

// form is the canonical form: members in the order of RFC 8785, numbers as they were written; see
// the package comment.
var form = json.JoinOptions(
	jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false),
)

// Check reports whether doc is exactly one strict JSON value that nests at most maxDepth levels
// deep. A scalar has depth 0 and [] depth 1. maxDepth outside 1..[MaxDepth] means [MaxDepth]. The
// error gives the byte offset and, as a JSON pointer, the place.
func Check(doc []byte, maxDepth int) error {
	if err := CheckDepth(doc, maxDepth); err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	if err := dec.SkipValue(); err != nil {
		return Explain(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w, at offset %d", ErrTrailing, dec.InputOffset())
	}
	return nil
}

// CheckDepth reports whether doc nests at most maxDepth levels deep, by counting brackets outside
// of strings. It checks nothing else, so it is cheap and runs before code that recurses. maxDepth
// is bounded as in [Check].
func CheckDepth(doc []byte, maxDepth int) error {
	if maxDepth < 1 || maxDepth > MaxDepth {
		maxDepth = MaxDepth
	}
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("%w: more than %d levels at offset %d", ErrTooDeep, maxDepth, i)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// Explain rewords the decoder's syntax errors for people: what is wrong, then where.
func Explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not strict JSON: it ends too early")
	}
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return fmt.Errorf("not strict JSON: %w", err)
	}
	where := fmt.Sprintf("offset %d", syntactic.ByteOffset)
	if p := string(syntactic.JSONPointer); p != "" {
		where = fmt.Sprintf("%s (%s)", where, p)
	}
	return fmt.Errorf("not strict JSON at %s: %w", where, syntactic.Err)
}

// JSON returns doc in canonical form, or an error if doc is not strict JSON. It does not change
// doc.
func JSON(doc []byte) ([]byte, error) {
	c, err := jsontext.AppendFormat(make([]byte, 0, len(doc)), doc, form)
	if err != nil {
		return nil, Explain(err)
	}
	return c, nil
}

// Marshal returns the canonical form of v. Struct fields need json tags; maps come out sorted.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return JSON(b)
}

// Sorted is [Marshal] for values whose struct fields are declared in the order of their names and
// whose raw values are canonical already. It saves a second pass over the bytes. All types that
// traces record are declared so, and a test checks that. In a string that is not UTF-8 (from a
// child process, for example), broken bytes become U+FFFD, so that writing a record does not fail.
func Sorted(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// MustSorted is [Sorted] for values that cannot fail to encode.
func MustSorted(v any) []byte {
	b, err := Sorted(v)
	if err != nil {
		panic(fmt.Sprintf("canonical: a value that must encode does not: %v", err))
	}
	return b
}

// MustMarshal is [Marshal] for values that cannot fail to encode: structs of strings, numbers and
// canonical bytes.
func MustMarshal(v any) []byte {
	b, err := Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("canonical: a value that must encode does not: %v", err))
	}
	return b
}

// AppendText appends s as a JSON string in canonical form, with U+FFFD for each byte that is not
// UTF-8.
func AppendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // its one error says that it replaced something
	return b
}

// Unmarshal decodes one strict JSON value into v. Unknown members, duplicate names and names in
// another case are errors.
func Unmarshal(doc []byte, v any) error {
	err := json.Unmarshal(doc, v, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(false))
	if err == nil {
		return nil
	}
	// The decoder varies the wording of its errors from process to process, on purpose. This error
	// is recorded, so it contains only the parts that do not vary.
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return Explain(err)
	}
	if semantic.Err != nil {
		return fmt.Errorf("at %s: %w", pointerOrRoot(semantic.JSONPointer), semantic.Err)
	}
	return fmt.Errorf("at %s: a JSON %s does not fit here", pointerOrRoot(semantic.JSONPointer), semantic.JSONKind)
}

func pointerOrRoot(p jsontext.Pointer) string {
	if p == "" {
		return "the top level"
	}
	return string(p)
}
