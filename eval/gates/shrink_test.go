package gates

import (
	"strings"
	"testing"
)

func TestShrink(t *testing.T) {
	holds := func(all ...string) func([]byte) bool {
		return func(in []byte) bool {
			for _, part := range all {
				if !strings.Contains(string(in), part) {
					return false
				}
			}
			return true
		}
	}
	for _, tc := range []struct {
		name, input, want string
		keeps             func([]byte) bool
	}{
		{"member", `{"a":1,"b":{"c":[1,2,3],"d":"x"},"e":null}`, `2`, holds("2")},
		{"text", "the quick brown fox jumps", "ro", holds("ro")},
		{"two-places", "abcdefghijklmnop", "bn", holds("b", "n")},
		{"nothing-can-go", "ab", "ab", holds("ab")},
		{"all-can-go", "abc", "", holds()},
		{"empty", "", "", holds()},
		{"duplicate-members-stay", `{"x":1,"x":2,"y":3}`, `"x":"x":`, holds(`"x":`, `"x":`, "")},
		{"not-utf8", "aa\xff\xfebb", "\xff", holds("\xff")},
		{"still-an-object-of-one-list", `{"a":[1,{"b":2},3],"c":"long text"}`, `{"a":[]}`, func(in []byte) bool {
			_, _, parts := pieces(in)
			return len(parts) > 0 && string(parts[0].name) == `"a":` && parts[0].value[0] == '[' && in[len(in)-1] == '}'
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "duplicate-members-stay" {
				tc.keeps = func(in []byte) bool { return strings.Count(string(in), `"x":`) == 2 }
			}
			if got := string(shrink([]byte(tc.input), tc.keeps)); got != tc.want {
				t.Errorf("shrink(%s) = %s, want %s", tc.input, got, tc.want)
			}
		})
	}
}

// TestShrinkHasAnEnd: an input that cannot be shrunk in the probes that there are comes back as far as it came.
func TestShrinkHasAnEnd(t *testing.T) {
	probes := 0
	input := []byte(strings.Repeat("ab", 4_000))
	got := shrink(input, func(in []byte) bool {
		probes++
		return strings.Count(string(in), "a") == 4_000
	})
	if probes > maxProbes || strings.Count(string(got), "a") != 4_000 {
		t.Errorf("%d probes, %d bytes left with %d of 4000", probes, len(got), strings.Count(string(got), "a"))
	}
}

func TestASlipWithoutAKnownAnswerStaysWhole(t *testing.T) {
	c := trial{id: "x", want: "a", input: []byte("whole \xff"), got: func([]byte) string { return "b" }}
	if s := c.slip("b"); string(s.Bytes) != "whole \xff" || s.Input != "whole \uFFFD" || s.Want != "a" || s.Got != "b" {
		t.Errorf("slip() = %+v", s)
	}
}
