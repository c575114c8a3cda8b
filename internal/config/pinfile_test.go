package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

var pinA = canonical.Sum("test", []byte("a"))

// written fills in the digest that a text names as A.
func written(text string) string {
	return strings.NewReplacer("<A>", string(pinA)).Replace(text)
}

func TestReadPins(t *testing.T) {
	text := written(`{"s": {"one": {"pin": "<A>"}, "two": {}}, "r": ["three"], "q": {}}`)
	tools, pins, err := ReadPins("a.json", []byte(text))
	check.NoError(t, err)
	wantTools := []policy.Allowance{
		{Server: "s", Tools: []string{"one", "two"}}, {Server: "r", Tools: []string{"three"}}, {Server: "q"},
	}
	wantPins := []policy.Pin{{Definition: pinA, Server: "s", Tool: "one"}}
	if d := cmp.Diff(wantTools, tools) + cmp.Diff(wantPins, pins); d != "" {
		t.Errorf("ReadPins() (-want +got):\n%s", d)
	}
}

func TestWritePins(t *testing.T) {
	tools := []policy.Allowance{{Server: "r", Tools: []string{"x", "<\u00fc\"&>"}}, {Server: "s", Tools: []string{"two", "one"}}, {Server: "q"}}
	got, err := WritePins(tools, []policy.Pin{{Definition: pinA, Server: "s", Tool: "one"}})
	want := written("{\n  \"r\": {\n    \"x\": {},\n    \"<\u00fc\\\"&>\": {}\n  },\n" +
		"  \"s\": {\n    \"two\": {},\n    \"one\": {\n      \"pin\": \"<A>\"\n    }\n  },\n  \"q\": {}\n}\n")
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Errorf("WritePins() = %v (-want +got):\n%s", err, d)
	}
	if got, err := WritePins(nil, nil); string(got) != "{}\n" || err != nil {
		t.Errorf("WritePins() of nothing = %q, %v", got, err)
	}
	if got, err := WritePins(tools, []policy.Pin{{Definition: "sha256:1", Server: "s", Tool: "one"}}); err == nil || got != nil {
		t.Errorf("WritePins() with a pin that is no digest = %q, %v", got, err)
	}
}
