package traces

import (
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// TestEndingIsWhatItsTypeSays holds how an outcome is written to what its type says of its members: traces hold it, and their heads
// are made of it.
func TestEndingIsWhatItsTypeSays(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"nothing", ""},
		{"plain", "x"},
		{"quotes-and-control-characters", "\"\\/\b\n\x00\x1f\x7f"},
		{"what-is-special-in-html", "<&>\u2028\u2029"},
		{"beyond-ascii", "é\U0001f600\ufeff"},
		{"replaced-already", "a\ufffd\ufffdb"},
		{"not-utf8", "a\xff\xfe\xe2\x80b\xf0\x9f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := states.Outcome{
				Code: policy.Code(tc.text + "1"), Effect: states.Effect(tc.text + "2"), Gate: policy.Gate(tc.text + "3"), Note: tc.text + "4",
				Reason: tc.text + "5", State: tc.text + "6", Type: tc.text + "7",
			}
			for _, o := range []states.Outcome{o, {Reason: tc.text}} {
				if got, want := string(ending(o)), string(canonical.MustSorted(o)); got != want {
					t.Errorf("ending() = %s, want %s", got, want)
				}
			}
		})
	}
}
