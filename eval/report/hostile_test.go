package report_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
)

// nasty are texts that try to break out of where they stand, in HTML, SVG, CSS, Markdown and in what people see.
var nasty = []string{
	`<script>window.hacked = 1</script>`, `</title><script>window.hacked = 1</script>`, `"><img src=x onerror="window.hacked=1">`, `' onload='window.hacked=1`,
	`]]><script>window.hacked=1</script>`, `--><script>window.hacked=1</script>`, `</style><script>window.hacked=1</script>`, `</svg><iframe src="https://example.org">`,
	`{{.Policy}} {{template "table"}}`, "rtl \u202e\u2066 txt", "null \u0000 esc \u001b[31m", "tag \U000E0041 zero \u200b width", `a | b \| c` + "\n| --- |\n# h", "```\nnot code", "[x](javascript:alert(1))",
	`<base href="https://example.org/">`, `<link rel=stylesheet href="https://example.org/x.css">`, strings.Repeat("W", 1<<20), strings.Repeat("long ", 1<<18),
}

// hostile is a folder of results in which every text of a good one is nasty. Words that a file must have are left: formats,
// arms, outcomes, digests and what the machine's places are called.
func hostile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{attackFile, metricsFile, gatesFile} {
		var v any
		check.NoError(t, json.Unmarshal([]byte(stored(t, name)), &v))
		n := 0
		spoil(v, &n)
		if n < 4 {
			t.Fatalf("%s: only %d texts were changed", name, n)
		}
		begin := []byte("{")
		if all, format := v.(map[string]any), v.(map[string]any)["format"]; format != nil { // it stands first, as it is found by it
			begin = fmt.Appendf(begin, `"format":%q,`, format)
			delete(all, "format")
		}
		doc, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false))
		check.NoError(t, err)
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), append(begin, doc[1:]...), 0o600))
	}
	return dir
}

// kept are members whose texts have to be what they are.
var kept = map[string]bool{"format": true, "arm": true, "arms": true, "outcome": true, "machine": true, "from": true, "on": true, "to": true}

// spoil makes the texts of a document nasty, one after the other.
func spoil(v any, n *int) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, ok := v[name].(string); ok && !kept[name] {
				v[name] = nasty[*n%len(nasty)]
				*n++
			} else if !kept[name] || name == "arms" {
				spoil(v[name], n)
			}
		}
	case []any:
		for i := range v {
			spoil(v[i], n)
		}
	}
}
