package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/traces/ledger"
)

// A window is a browser with one page.
type window struct {
	*testing.T
	ctx context.Context
}

// until waits until the page and its script are loaded, and the page's content has a text or, if has is false, does not have it.
func (b *window) until(has bool, text string) {
	b.Helper()
	soon(b.T, fmt.Sprintf("the page has %q: %t", text, has), func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			fmt.Sprintf("document.readyState === 'complete' && document.querySelector('main').innerHTML.includes(%q) === %t", text, has)))
		return err == nil && is
	})
}

func (b *window) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// mostDelay is far more than an update may take. The test prints what it took.
const mostDelay = 10 * time.Second

// TestConsoleUpdates: an open page shows what changes soon after the commit, and what changed while the service, or the proxy before it, was
// gone.
func TestConsoleUpdates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"behind-nginx", "behind-caddy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, holdLook, "serve: {hosts: [approvals.example.com]}\n")
			p := newProxy(t, strings.TrimPrefix(name, "behind-"), o.served)
			const at = "https://approvals.example.com"
			flags := []chromedp.ExecAllocatorOption{
				chromedp.Flag("host-resolver-rules", "MAP approvals.example.com:443 "+p.address), chromedp.Flag("ignore-certificate-errors", true),
			}
			link := command(t.Context(), map[string]string{tokenVariable: o.bob}, "console", "-c", o.config, "--url", at)
			link.Want(t, exitYes)
			ctx, complaints := browsertest.Start(t, func(e *network.EventRequestWillBeSent) bool { return strings.HasPrefix(e.Request.URL, at) }, flags...)
			b := &window{t, ctx}
			b.do(chromedp.Navigate(strings.TrimSpace(link.Stdout)), chromedp.Click(chromedp.Search("main button")))
			b.until(true, "No call is held")
			a := o.agent("/mcp", o.ci)
			var runs []string
			var most time.Duration
			for n := range 5 {
				asked := time.Now() // before the commit
				runs = append(runs, o.held(t, a, fmt.Sprintf(`{"n":%d}`, n)))
				b.until(true, "call-"+runs[n])
				most = max(most, time.Since(asked))
			}
			t.Logf("from the request of a held call to the change of the page: at most %v", most)
			if most > mostDelay {
				t.Errorf("a page changes %v after a commit", most)
			}
			p.stop(t)
			o.decide(t, "deny", runs[0], o.bob)
			p.start(t)
			b.until(false, "call-"+runs[0])
			b.do(chromedp.Click(chromedp.Search("#call-" + runs[1])))
			b.until(true, `value="deny"`)
			o.stop(t, exitYes)
			digest := command(t.Context(), nil, "ledger", "show", runs[1], "-c", o.config, "--json").Member("/request/binding")
			command(t.Context(), map[string]string{tokenVariable: o.bob}, "approvals", "deny", runs[1], "-c", o.config, "--digest", strings.Trim(digest, `"`),
				"--reason", "while nobody served").Want(t, exitYes)
			o.served = serve(t, o.dir, "--admin", strings.TrimPrefix(o.admin, "http://"))
			b.until(true, "while nobody served")
			b.until(false, `value="deny"`)
			b.do(chromedp.Click(chromedp.Search("nav a")))
			b.until(true, "call-"+runs[2])
			last := o.held(t, o.agent("/mcp", o.ci), `{"n":9}`)
			b.until(true, "call-"+last)
			if all := complaints.Take(); len(all) > 0 {
				t.Errorf("the browser says: %s", strings.Join(all, "\n"))
			}
			for _, q := range recorded(t, o.dir) {
				if q.RunID == runs[1] && q.Status != ledger.Denied {
					t.Errorf("the call is %s", q.Status)
				}
			}
		})
	}
}
