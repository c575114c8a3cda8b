package upstream

import (
	"strings"
	"testing"

	"pgfsm/internal/secret"
)

func TestLimitsNeverMeanUnlimited(t *testing.T) {
	want := Limits{DefaultResultBytes, DefaultCatalogBytes, DefaultPages, DefaultTools, DefaultUnasked, DefaultLinks, DefaultServerSessions}
	if l := (Limits{}).withDefaults(); l != want {
		t.Errorf("withDefaults() = %+v, want %+v", l, want)
	}
}

func TestPresentable(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "connection refused", "connection refused"},
		{"ansi", "\x1b[2Jx", `\u001b[2Jx`},
		{"secret", "key secret-1 and Bearer secret-1", "key " + secret.Mask + " and " + secret.Mask},
		{"secret-in-quotes", `it said "secret\"2"`, `it said "` + secret.Mask + `"`},
		{"long", strings.Repeat("x", maxReason+10), strings.Repeat("x", maxReason) + "…"},
	}
	secrets := secret.New([]string{"Bearer secret-1", `secret"2`})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := presentableText(tt.in, secrets); got != tt.want {
				t.Errorf("presentableText(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLabelKeepsCharactersWhole(t *testing.T) {
	if got := cutLabel(strings.Repeat("x", maxLabel-1)+"é", nil); got != strings.Repeat("x", maxLabel-1) {
		t.Errorf("cutLabel() = %q, want it cut before the character that does not fit", got)
	}
	if got := cutLabel(strings.Repeat("x", maxLabel), nil); len(got) != maxLabel {
		t.Errorf("cutLabel() of %d bytes has %d, want all", maxLabel, len(got))
	}
}
