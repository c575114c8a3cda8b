package gates

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A trial is one case: an input, the right answer, and how to get the answer that is given.
type trial struct {
	id, want string
	input    []byte
	got      func(input []byte) string
	// known says whether want is the right answer to a smaller input too, and got a wrong one. Without it nothing smaller is
	// tried.
	known func(input []byte, got string) bool
}

// maxProbes bounds how often an input is tried while it is shrunk.
const maxProbes = 3000

// slip is the trial as a slip, shrunk, given the wrong answer that it got.
func (t *trial) slip(got string) Slip {
	small := t.input
	if t.known != nil {
		small = shrink(t.input, func(in []byte) bool { return t.known(in, got) && t.got(in) == got })
	}
	return Slip{ID: t.id, Input: strings.ToValidUTF8(string(small), "\uFFFD"), Want: t.want, Got: got, Bytes: small}
}

// shrink takes pieces out of an input as long as keeps holds: members and elements where it is JSON, then runs of bytes. It
// ends with an input from which no single piece can go, or when [maxProbes] were tried.
func shrink(input []byte, keeps func([]byte) bool) []byte {
	probes := 0
	try := func(in []byte) bool {
		probes++
		return probes <= maxProbes && keeps(in)
	}
	for small := input; ; input = small {
		small = withoutBytes(withoutMembers(input, try), try)
		if len(small) == len(input) || probes > maxProbes {
			return small
		}
	}
}

// withoutMembers takes out members of objects and elements of lists, one at a time.
func withoutMembers(input []byte, try func([]byte) bool) []byte {
	for {
		next := []byte(nil)
		smaller(input, func(in []byte) bool {
			if !try(in) {
				return true
			}
			next = in
			return false
		})
		if next == nil {
			return input
		}
		input = next
	}
}

// smaller yields the value with one member or element taken out, at any depth, outermost first, until yield says no.
func smaller(value []byte, yield func([]byte) bool) bool {
	begin, end, parts := pieces(value)
	put := func(i int, instead []byte) []byte {
		kept := make([][]byte, 0, len(parts))
		for j, p := range parts {
			switch {
			case j != i:
				kept = append(kept, append(append([]byte(nil), p.name...), p.value...))
			case instead != nil:
				kept = append(kept, append(append([]byte(nil), p.name...), instead...))
			}
		}
		return append(append([]byte{begin}, bytes.Join(kept, []byte(","))...), end)
	}
	for i := range parts {
		if !yield(put(i, nil)) {
			return false
		}
	}
	for i, p := range parts {
		if !smaller(p.value, func(in []byte) bool { return yield(put(i, in)) }) {
			return false
		}
	}
	return true
}

// A piece is a member, with its name and colon, or an element of a list.
type piece struct{ name, value []byte }

// pieces splits an object or a list; anything else has none. Duplicate names are kept: they may be what slips.
func pieces(value []byte) (begin, end byte, parts []piece) {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	open, err := dec.ReadToken()
	if err != nil {
		return 0, 0, nil
	}
	switch open.Kind() {
	case '{':
		begin, end = '{', '}'
	case '[':
		begin, end = '[', ']'
	default:
		return 0, 0, nil
	}
	for dec.PeekKind() != jsontext.Kind(end) {
		var p piece
		if begin == '{' {
			name, err := dec.ReadValue()
			if err != nil {
				return 0, 0, nil
			}
			p.name = append(bytes.Clone(name), ':')
		}
		v, err := dec.ReadValue()
		if err != nil {
			return 0, 0, nil
		}
		p.value = bytes.Clone(v)
		parts = append(parts, p)
	}
	return begin, end, parts
}

// withoutBytes takes out runs of bytes, long ones first.
func withoutBytes(input []byte, try func([]byte) bool) []byte {
	for size := max(len(input)/2, 1); ; size /= 2 {
		for from := 0; from < len(input); {
			to := min(from+size, len(input))
			in := append(append([]byte(nil), input[:from]...), input[to:]...)
			if try(in) {
				input = in
			} else {
				from = to
			}
		}
		if size <= 1 {
			return input
		}
	}
}
