package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

var (
	pinA = canonical.Sum("test", []byte("a"))
	pinB = canonical.Sum("test", []byte("b"))
)

// written fills in the digests that a text names as A and B.
func written(text string) string {
	return strings.NewReplacer("<A>", string(pinA), "<B>", string(pinB)).Replace(text)
}

func TestReadPins(t *testing.T) {
	text := written(`{"s": {"one": {"pin": "<A>"}, "two": {}}, "r": ["three"], "q": {}}`)
	tools, pins, err := ReadPins("a.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	wantTools := []policy.Allowance{
		{Server: "s", Tools: []string{"one", "two"}}, {Server: "r", Tools: []string{"three"}}, {Server: "q"},
	}
	wantPins := []policy.Pin{{Definition: pinA, Server: "s", Tool: "one"}}
	if d := cmp.Diff(wantTools, tools) + cmp.Diff(wantPins, pins); d != "" {
		t.Errorf("ReadPins() (-want +got):\n%s", d)
	}
}

func TestEditPins(t *testing.T) {
	one := []policy.Pin{{Definition: pinA, Server: "s", Tool: "one"}}
	for _, tt := range []struct {
		name, text string
		pins       []policy.Pin
		want       string
	}{
		{"nothing-allowed", `{}`, nil, "{}\n"},
		{"list-becomes-an-object", `{"r":["x"],"s":["two","one"],"q":[]}`, one,
			"{\n  \"r\": {\n    \"x\": {}\n  },\n" +
				"  \"s\": {\n    \"two\": {},\n    \"one\": {\n      \"pin\": \"<A>\"\n    }\n  },\n  \"q\": {}\n}\n"},
		{"object-stays-an-object", `{"s":{"one":{"pin":"<B>"}}}`, nil, "{\n  \"s\": {\n    \"one\": {}\n  }\n}\n"},
		{"pin-is-replaced", `{"s":{"one":{"pin":"<B>"}}}`, one,
			"{\n  \"s\": {\n    \"one\": {\n      \"pin\": \"<A>\"\n    }\n  }\n}\n"},
		{"text-keeps-its-characters", "{\"s\":[\"<\u00fc\\\"&>\"]}", nil, "{\n  \"s\": {\n    \"<\u00fc\\\"&>\": {}\n  }\n}\n"},
		{"line-ends-of-windows", "{\r\n\"s\": {}}\r\n", nil, "{\n  \"s\": {}\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := EditPins([]byte(written(tt.text)), tt.pins)
			if err != nil {
				t.Fatalf("EditPins(%s) = %v", tt.text, err)
			}
			if d := cmp.Diff(written(tt.want), string(got)); d != "" {
				t.Errorf("EditPins(%s) (-want +got):\n%s", tt.text, d)
			}
		})
	}
}

func TestEditPinsRefuses(t *testing.T) {
	const text = `{"s":["one"]}`
	for _, tt := range []struct {
		name, text string
		pins       []policy.Pin
		says       string
	}{
		{"tool-that-is-not-there", text, []policy.Pin{{Definition: pinA, Server: "s", Tool: "two"}}, "not on the all"},
		{"server-that-is-not-there", text, []policy.Pin{{Definition: pinA, Server: "r", Tool: "one"}}, "not on the all"},
		{"pin-that-is-no-digest", text, []policy.Pin{{Definition: "sha256:1", Server: "s", Tool: "one"}}, "digest"},
		{"no-json", `{`, nil, "not JSON"},
		{"no-allowlist", `{"s":"one"}`, nil, "a list"},
		{"tool-that-stands-twice", `{"s":["one","one"]}`, nil, `has "one" twice`},
		{"unknown-key-of-a-tool", `{"s":{"one":{"pim":"x"}}}`, nil, "unknown key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := EditPins([]byte(tt.text), tt.pins)
			if err == nil || !strings.Contains(err.Error(), tt.says) || got != nil {
				t.Errorf("EditPins(%.80s) = %q, %v, want nothing and an error with %q", tt.text, got, err, tt.says)
			}
		})
	}
}
