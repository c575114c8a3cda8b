package main

import (
	"bytes"
	"testing"
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
