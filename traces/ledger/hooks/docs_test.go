package hooks_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger/hooks"
)

var pythonFence = regexp.MustCompile("(?s)```python\n(.*?)```")

// TestDocsVerify runs the sample of docs/reference/api.md: it takes our messages, and no others.
func TestDocsVerify(t *testing.T) {
	python := tool.Path(t, "python3", "python3")
	doc, err := os.ReadFile("../../../docs/reference/api.md")
	check.NoError(t, err)
	sample := pythonFence.FindSubmatch(doc)
	if sample == nil {
		t.Fatal("the page has no sample")
	}
	now := time.Now().Unix()
	sign := func(at int64, body string) string {
		s, err := hooks.Sign(secret, "msg_1", at, []byte(body))
		check.NoError(t, err)
		return s
	}
	good := sign(now, "body")
	for _, c := range []struct {
		name, signature, body string
		at                    int64
		want                  string
	}{
		{"ours", good, "body", now, "True"},
		{"ours-beside-another", "v1,AAAA " + good, "body", now, "True"},
		{"other-body", good, "bodY", now, "False"},
		{"other-time", good, "body", now - 1, "False"},
		{"old", sign(now-400, "body"), "body", now - 400, "False"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf("%s\nprint(verify(%q, {'webhook-id': 'msg_1', 'webhook-timestamp': %q, 'webhook-signature': %q}, %q.encode()), end='')\n",
				sample[1], secret, strconv.FormatInt(c.at, 10), c.signature, c.body)
			if out, err := exec.CommandContext(t.Context(), python, "-c", text).CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("verify() = %s, %v, want %s", out, err, c.want)
			}
		})
	}
}
