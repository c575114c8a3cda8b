package ledger_test

import (
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

func TestParseCheckpoint(t *testing.T) {
	const head = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	good := ledger.Format + "\n12\n" + head + "\n"
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"as-written", good, true},
		{"no-last-new-line", strings.TrimSuffix(good, "\n"), true},
		{"empty-ledger", ledger.Format + "\n0\n" + string(ledger.Origin) + "\n", true},
		{"empty-ledger-of-another-head", ledger.Format + "\n0\n" + head + "\n", false},
		{"nothing", "", false},
		{"two-lines", ledger.Format + "\n12\n", false},
		{"four-lines", good + "more\n", false},
		{"another-format", strings.Replace(good, "/v1", "/v2", 1), false},
		{"size-with-a-sign", strings.Replace(good, "12", "+12", 1), false},
		{"size-with-a-zero", strings.Replace(good, "12", "012", 1), false},
		{"size-below-zero", strings.Replace(good, "12", "-12", 1), false},
		{"size-too-large", strings.Replace(good, "12", "9223372036854775808", 1), false},
		{"size-as-large-as-can-be", strings.Replace(good, "12", "9223372036854775807", 1), true},
		{"head-of-another-length", strings.Replace(good, head, head[:len(head)-1], 1), false},
		{"head-in-capitals", strings.Replace(good, "abcdef", "ABCDEF", 1), false},
		{"carriage-returns", strings.ReplaceAll(good, "\n", "\r\n"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ledger.ParseCheckpoint(c.text)
			if (err == nil) != c.ok {
				t.Fatalf("ParseCheckpoint() = %v, ok %t", err, c.ok)
			}
			if again, err := ledger.ParseCheckpoint(got.String()); c.ok && (err != nil || again != got) {
				t.Errorf("ParseCheckpoint(String()) = %v, %v", again, err)
			}
		})
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(ledger.Format + "\n0\n" + string(ledger.Origin) + "\n")
	f.Add(ledger.Format + "\n12\n" + string(ledger.Origin))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ledger.ParseCheckpoint(text)
		if err != nil {
			return
		}
		if strings.TrimSuffix(text, "\n") != strings.TrimSuffix(c.String(), "\n") {
			t.Errorf("%q and %q are one checkpoint", text, c.String())
		}
	})
}
