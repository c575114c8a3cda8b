package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)`)
	testText     = regexp.MustCompile("\"([^\"\n]*)\"")
	failureRow   = regexp.MustCompile(`(?m)^\| (?:[^|]* \| ){2,}.*<!-- (.*) -->`)
)

// testNames are the tests of this folder, of the runner, of the gateway and of the ledger. With each go the texts of its file: the names of subtests are
// among them.
func testNames(t *testing.T) map[string]map[string]bool {
	t.Helper()
	names := make(map[string]map[string]bool)
	for _, folder := range []string{".", "../internal/runner", "../mcp/gateway", "../mcp/gateway/front", "../mcp/upstream", "../traces/ledger"} {
		found, err := filepath.Glob(folder + "/*_test.go")
		check.NoError(t, err)
		for _, path := range found {
			source, texts := clitest.Read(t, path), make(map[string]bool)
			for _, m := range testText.FindAllStringSubmatch(source, -1) {
				texts[m[1]] = true
			}
			for _, m := range testFunction.FindAllStringSubmatch(source, -1) {
				names[m[1]] = texts
			}
		}
	}
	return names
}

// TestServeFailureMatrix: every row of the failure tables names the tests that show it, and these exist.
func TestServeFailureMatrix(t *testing.T) {
	names := testNames(t)
	rows := 0
	page := clitest.Read(t, "../docs/operate/failures.md")
	for _, row := range failureRow.FindAllStringSubmatch(page, -1) {
		rows++
		for name := range strings.SplitSeq(row[1], ", ") {
			test, subtests, _ := strings.Cut(name, "/")
			texts, known := names[test]
			for part := range strings.SplitSeq(subtests, "/") {
				known = known && (part == "" || texts[part])
			}
			if !known {
				t.Errorf("the test %s of a row does not exist", name)
			}
		}
	}
	if all := strings.Count(page, "\n| ") - 2*strings.Count(page, "\n| ---"); rows < 20 || rows != all {
		t.Errorf("%d of %d rows name a test", rows, all)
	}
}
