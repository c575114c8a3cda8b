package main

import (
	"bytes"
	"testing"

	"pgfsm/internal/visible"
)

// TestInkIsForTerminals: what is no terminal gets no colour, whatever the environment says.
func TestInkIsForTerminals(t *testing.T) {
	for _, env := range []map[string]string{nil, {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, {"NO_COLOR": ""}} {
		w := world{stdout: &bytes.Buffer{}, getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
		k := newInk(w)
		for got, want := range map[string]string{
			k.mark(true): "✓", k.mark(false): "✗", k.faint("faint"): "faint", k.bold("bold"): "bold",
		} {
			if got != want {
				t.Errorf("with %v: ink = %q, want %q", env, got, want)
			}
		}
	}
}

// TestEveryCharacterIsShown: escaping changes how a document is written, never its value.
func TestEveryCharacterIsShown(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"plain", `{"a": "ä €"}`, `{"a": "ä €"}`},
		{"lines", "{\n  \"a\": 1\n}", "{\n  \"a\": 1\n}"},
		{"bidi", "\"\u202eevil\"", `"\u202eevil"`},
		{"beyond-the-basic-plane", "\"\U000e0041\"", `"\udb40\udc41"`},
		{"delete", "\"\x7f\"", `"\u007f"`},
		{"no-break-space", "\"\u00a0\"", `"\u00a0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := visible.JSON([]byte(tt.doc)); got != tt.want {
				t.Errorf("visible.JSON(%q) = %s, want %s", tt.doc, got, tt.want)
			}
		})
	}
}
