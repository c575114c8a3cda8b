package api

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/evidence"
)

// A part is a section of a result's text.
type part struct {
	Text string
	Item int // item of the summary that this evidence supports, from 1; 0: none
}

// A claim is an item of a summary.
type claim struct {
	evidence.Located
	Found bool // the evidence is marked in the result
}

// typedAt is the place of the typed payload in a tool's result. Evidence is located in this
// payload.
const typedAt = "/structuredContent"

// markEvidence splits an indented result at the evidence of a summary. It marks only evidence that
// is exactly at its recorded place.
func markEvidence(result jsontext.Value, summary []evidence.Located) (parts []part, claims []claim, err error) {
	text := indentJSON(result)
	for _, item := range summary {
		claims = append(claims, claim{Located: item})
	}

	dec, written := jsontext.NewDecoder(strings.NewReader(text)), 0
	for len(claims) > 0 {
		offset := dec.InputOffset()
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}

		places := placesAt(claims, string(dec.StackPointer()))
		if len(places) == 0 || canonical.IsName(dec) || !slices.Contains([]jsontext.Kind{'"', '0', 't', 'f'}, token.Kind()) {
			continue
		}

		// The decoder is behind the value; spaces and separators stand before it.
		value, end := token.String(), int(dec.InputOffset())
		raw := strings.TrimLeft(text[offset:end], " \n:,")
		start := end - len(raw)
		found := false

		for _, i := range places {
			found = claims[i].checkEvidence(value) || found
		}

		if !found {
			continue
		}

		// The text between two marked values stays one part.
		parts = append(append(parts, part{Text: text[written:start]}),
			splitAtEvidence(value, raw, claims, places)...)
		written = end
	}

	return append(parts, part{Text: text[written:]}), claims, nil
}

// placesAt returns the items whose evidence is in the value at a pointer, in the order of their
// places.
func placesAt(claims []claim, pointer string) (all []int) {
	for i := range claims {
		if typedAt+claims[i].At.Pointer == pointer {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(claims[a].At.Start, claims[b].At.Start) })
	return all
}

// checkEvidence reports and stores whether a value has the evidence at its place.
func (c *claim) checkEvidence(value string) bool {
	p := c.At
	c.Found = p.Start >= 0 && p.Start < p.End && p.End <= len(value) && value[p.Start:p.End] == c.Evidence
	return c.Found
}

// splitAtEvidence splits a value at its evidence. It quotes a string again. If evidence overlaps,
// the overlap belongs to the first item.
func splitAtEvidence(value, raw string, claims []claim, places []int) (parts []part) {
	write := func(s string) string { return s }
	if raw[0] == '"' {
		write = func(s string) string {
			quoted, err := jsontext.AppendQuote(nil, s)
			if err != nil {
				return s // not UTF-8; a token always is
			}
			return string(quoted[1 : len(quoted)-1])
		}
		parts = append(parts, part{Text: `"`})
	}

	end := 0
	for _, i := range places {
		if p := claims[i].At; claims[i].Found && p.End > end {
			start := max(end, p.Start)
			parts = append(parts, part{Text: write(value[end:start])}, part{write(value[start:p.End]), i + 1})
			end = p.End
		}
	}

	parts = append(parts, part{Text: write(value[end:])})
	if raw[0] == '"' {
		parts = append(parts, part{Text: `"`})
	}

	return parts
}
