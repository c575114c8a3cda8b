package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTelemetry: headers of the collector are resolved, are secrets, and are warned of if they are literal. Without the key there is no collector.
func TestTelemetry(t *testing.T) {
	const base = "version: 1\nservers: {docs: {url: \"https://docs.example.com/mcp\"}}\nallowlist: allow.json\n"
	files := func(more string) map[string]string {
		return map[string]string{"pgfsm.yaml": base + more, "allow.json": "{}"}
	}
	l, err := Load("pgfsm.yaml", openMap(files("telemetry: {otlp: {endpoint: \"https://otel.example.com\", headers: {Authorization: \"Bearer ${env:OTEL}\", X-Key: literal-1}}}\n")), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Resolve(lookup(map[string]string{"OTEL": "token-1234"}), openMap(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &OTLP{Endpoint: "https://otel.example.com", Headers: []Pair{{"Authorization", "Bearer token-1234"}, {"X-Key", "literal-1"}}, SamplePercent: 100}
	if diff := cmp.Diff(want, got.OTLP); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"token-1234", "Bearer token-1234", "literal-1"} {
		if !slices.Contains(got.Secrets, secret) {
			t.Errorf("%q is not masked", secret)
		}
	}
	if l.OTLP.Headers[0].Value != "Bearer ${env:OTEL}" {
		t.Error("Resolve wrote a secret into what was loaded")
	}
	if n := slices.IndexFunc(l.Literals, func(w string) bool { return strings.Contains(w, "X-Key") }); n < 0 {
		t.Errorf("warnings: %q", l.Literals)
	}
	if _, err := l.Resolve(lookup(nil), openMap(nil)); err == nil {
		t.Error("a variable that is not set is no fault")
	}
	if l, err = Load("pgfsm.yaml", openMap(files("telemetry: {}\n")), Overrides{}); err != nil || l.OTLP != nil {
		t.Errorf("without otlp: %v, %v", l.OTLP, err)
	}
}
