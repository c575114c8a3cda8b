package clitest_test

import (
	"testing"

	"pgfsm/internal/test/clitest"
)

// TestHolds: the search for secrets finds them.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"plain", `a secret-1 b`, true},
		{"not-there", `a secret-2 "b\n" c`, false},
		{"escaped", `{"a":"\u0073ecret-1"}`, true},
		{"escaped-in-a-string-in-a-string", `{"a":"{\"b\":\"\\u0073ecret-1\"}"}`, true},
		{"behind-a-quote-that-is-escaped", `["\"","\u0073ecret-1"]`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clitest.Holds(tt.text, "secret-1"); got != tt.want {
				t.Errorf("Holds(%s) = %t, want %t", tt.text, got, tt.want)
			}
		})
	}
}
