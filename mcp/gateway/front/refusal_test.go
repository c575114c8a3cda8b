package front

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

// TestDocsHaveTheRefusalsOfTheFront: clients go by these codes, so the page has a row for each.
func TestDocsHaveTheRefusalsOfTheFront(t *testing.T) {
	codes := func(path, begin, end string, code *regexp.Regexp) (found []string) {
		text, err := os.ReadFile(path)
		check.NoError(t, err)
		_, part, ok := strings.Cut(string(text), begin)
		if !ok {
			t.Fatalf("%s lacks %q", path, begin)
		}
		part, _, _ = strings.Cut(part, end)
		for _, m := range code.FindAllStringSubmatch(part, -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return found
	}
	want := codes("refusal.go", "// Codes in the data of refusals.", "\n)", regexp.MustCompile(`= "(\w+)"`))
	page := "../../../docs/reference/gateway-protocol.md"
	got := codes(page, "\n| code | status | means |\n", "\n\n", regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\d+ \\|"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of %s has other codes than the front (-front +page):\n%s", page, diff)
	}
}
