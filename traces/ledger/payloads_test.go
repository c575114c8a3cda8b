package ledger_test

import (
	"bytes"
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

const aDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestPayloadsHaveOneForm: what differs only in spelling is refused, for it would be hashed otherwise.
func TestPayloadsHaveOneForm(t *testing.T) {
	const good = `{"bytes":12,"type":"tool.result"}`
	const steps = `{"inputs":[{"event":{"happened":"x"},"step":0}],"permit":"` + aDigest + `","steps":["dispatch"],"type":"proxy.sent"}`
	for _, c := range []struct {
		name, text string
		kind       ledger.Type
		ok         bool
	}{
		{"with-a-step", steps, ledger.ProxySent, true},
		{"without-a-step", strings.Replace(steps, `"dispatch"`, "", 1), ledger.ProxySent, false},
		{"event-by-reference", strings.Replace(steps, `{"happened":"x"}`, `"@`+aDigest+`"`, 1), ledger.ProxySent, true},
		{"input-of-a-later-step", strings.Replace(steps, `"step":0`, `"step":1`, 1), ledger.ProxySent, false},
		{"input-of-nothing", strings.Replace(steps, `"event":{"happened":"x"},`, "", 1), ledger.ProxySent, false},
		{"event-of-another-kind", strings.Replace(steps, `{"happened":"x"}`, `"x"`, 1), ledger.ProxySent, false},
		{"as-written", good, ledger.ToolResult, true},
		{"of-another-type", good, ledger.ProxySent, false},
		{"of-no-type", good, "tool.results", false},
		{"white-space", strings.Replace(good, ":12", ": 12", 1), ledger.ToolResult, false},
		{"another-order", `{"type":"tool.result","bytes":12}`, ledger.ToolResult, false},
		{"another-case", strings.Replace(good, "bytes", "Bytes", 1), ledger.ToolResult, false},
		{"a-member-twice", strings.Replace(good, "{", `{"bytes":12,`, 1), ledger.ToolResult, false},
		{"a-member-more", strings.Replace(good, "{", `{"a":1,`, 1), ledger.ToolResult, false},
		{"a-member-less", `{"bytes":12}`, ledger.ToolResult, false},
		{"a-number-written-otherwise", strings.Replace(good, "12", "12.0", 1), ledger.ToolResult, false},
		{"a-letter-escaped", strings.Replace(good, "tool", `\u0074ool`, 1), ledger.ToolResult, false},
		{"null", "null", ledger.ToolResult, false},
		{"nothing", "", ledger.ToolResult, false},
		{"text-behind", good + " ", ledger.ToolResult, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ledger.ReadAgain(c.kind, []byte(c.text)); (err == nil) != c.ok {
				t.Errorf("reading %s = %v, ok %t", c.text, err, c.ok)
			}
		})
	}
}

// FuzzPayload: a payload has only one accepted encoding, and no input breaks the reader.
func FuzzPayload(f *testing.F) {
	d := newFixture(f)
	d.fill()
	d.Inspect(func(r ledger.Reader) error {
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if len(e.Payload) <= ledger.MaxInline {
				f.Add(string(e.Type), []byte(e.Payload))
			}
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		again, err := ledger.ReadAgain(ledger.Type(kind), text)
		if err == nil && !bytes.Equal(again, text) {
			t.Errorf("%s and %s are one payload", text, again)
		}
	})
}
