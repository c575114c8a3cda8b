package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/console"
)

// TestHostsOfOthers: the console answers under its own names only, and goes nowhere else.
func TestHostsOfOthers(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	for _, host := range []string{
		"", "localhost:9464", "127.0.0.1", "127.0.0.1:9464.", "127.0.0.2:9464", "[::1]:9464", "127.1:9464", "2130706433:9464",
		"console.example.com.evil.example", "evil.example:9464", "console.example.com:443", "127.0.0.1:9464,evil.example",
	} {
		b.page("", func(r *http.Request) { r.Host = host }).want(t, http.StatusMisdirectedRequest)
	}
	for _, name := range []string{"X-Forwarded-Host", "Forwarded", "X-Original-Url", "X-Rewrite-Url"} {
		got := b.get("/", header(name, "host=evil.example"))
		if to := got.header.Get("Location"); to != console.Path {
			t.Errorf("%s leads to %q", name, to)
		}
	}
}

var nextField = regexp.MustCompile(`name="next" value="([^"]*)"`)

// TestNextIsAPageOfTheConsole: after signing in a person comes to a page of the console, whatever the address was.
func TestNextIsAPageOfTheConsole(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	b := d.browser(here)
	for path, want := range map[string]string{ // in any order
		"calls/" + q.RunID: "calls/" + q.RunID, "runs": "runs", "runs/" + q.RunID: "runs/" + q.RunID, "": "",
		"now": "now", "log": "log", "log/3": "log/3", "policy": "policy", "servers": "servers",
		"runs?next=//evil.example": "runs", "runs/" + q.RunID + "/trace": "", "events?of=held&after=0": "",
	} {
		got := b.get(console.Path + path)
		field := nextField.FindStringSubmatch(got.body)
		if got.status != http.StatusUnauthorized || field == nil || field[1] != want {
			t.Errorf("%s: %d leads to %q, want %q", path, got.status, field, want)
		}
	}
	for _, path := range []string{"//evil.example", "/evil.example", "%2f%2fevil.example", "calls/../../evil", `\\evil.example`, "runs/" + q.RunID + "//evil.example"} {
		if got := b.get(console.Path + path); got.status != http.StatusNotFound || got.header.Get("Location") != "" {
			t.Errorf("%s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
}

// TestImitation: words of the console that an agent or a server sends are only where the page shows their text.
func TestImitation(t *testing.T) {
	const words = "approved: pgfsm makes the call within seconds"
	d := newFixture(t)
	q := d.ask(1, carol, words, fmt.Sprintf(`{%q:%q}`, words, words), words)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	theirs := regexp.MustCompile(`(?s)<dd>.*?</dd>|<td class="theirs.*?</td>|<th scope="row">.*?</th>|<pre class="theirs".*?</pre>`)
	for _, page := range []string{"", "calls/" + q.RunID, "runs", "runs/" + q.RunID} {
		got := b.page(page)
		got.want(t, http.StatusOK)
		if rest := theirs.ReplaceAllString(got.body, ""); strings.Contains(rest, words) {
			t.Errorf("%q says it itself: %s", page, rest)
		}
	}
	b.page("calls/"+q.RunID).want(t, http.StatusOK, words, `<p class="standing pending"><b>pending</b>`)
}

// TestStreamsOfClientsThatLeft: there are so many streams at most. A client that leaves, or does not read, takes no stream away from other clients.
func TestStreamsOfClientsThatLeft(t *testing.T) {
	d, host := serves(t)
	b := d.signedIn(host, alice, ledger.RoleApprover)
	for _, query := range []string{"", "of=held", "of=held&after=x", "of=x&after=0", "of=..%2Fruns&after=0"} {
		if got := b.page("events?" + query); got.status == http.StatusOK {
			t.Errorf("%q: %d", query, got.status)
		}
	}
	for range 3 {
		t.Run("round", func(t *testing.T) {
			for range 64 {
				b.streams(t, "of=held&after=0") // the client does not read it; the end of the round closes it
			}
			b.page("events?of=held&after=0").want(t, http.StatusServiceUnavailable)
			b.page("").want(t, http.StatusOK) // pages still come
		})
		err := ledger.Poll(t.Context(), ledger.PollInterval, func() (bool, error) {
			got := b.page("events?of=x&after=0") // which is refused only after it got a stream
			return got.status == http.StatusNotFound, nil
		})
		check.NoError(t, err)
	}
}

// TestThiefOnAnotherPort: another service of this machine gets no cookie of the console, cannot show its pages in a frame, and cannot vote.
func TestThiefOnAnotherPort(t *testing.T) {
	d, host := serves(t)
	q := d.Hold(1)
	link, err := d.NewLink(t.Context(), d.Approver(alice))
	check.NoError(t, err)
	var mu sync.Mutex
	var call string // its address, as if the thief knew the secret path
	var stolen []string
	asked := 0
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if got := r.Header.Get("Cookie") + r.Header.Get("Referer"); strings.Contains(got, host) || r.Header.Get("Cookie") != "" {
			stolen = append(stolen, got)
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><title>thief</title><iframe name="f" src="%s"></iframe>
<form method="post" action="%s"><input name="vote" value="approve"><input name="digest" value="%s"><input name="reason" value=""></form>`, call, call, q.Binding)
	}))
	defer thief.Close()
	ctx, _ := browsertest.Start(t, func(*network.EventRequestWillBeSent) bool { return true })
	b := &tab{T: t, ctx: ctx}
	b.do(chromedp.Navigate("http://"+host+console.LinkPath+link), chromedp.Click(chromedp.Search("main button")))
	b.shows("0 of 1")
	base, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.pathname"))
	check.NoError(t, err)
	call = "http://" + host + base + "calls/" + q.RunID
	for _, path := range []string{"/", console.Path, console.Path + "s/"} {
		b.do(chromedp.Navigate(thief.URL + path))
		b.until("the thief's page is there", "frames.length === 1")
		tree, err := chromedp.Call(ctx, cdppage.GetFrameTree, cdp.Empty{})
		if err != nil || len(tree.FrameTree.ChildFrames) != 1 || tree.FrameTree.ChildFrames[0].Frame.UnreachableURL == "" {
			t.Errorf("the frame shows the call: %+v, %v", tree.FrameTree, err)
		}
	}
	b.do(chromedp.Submit(chromedp.Search("form")))
	b.shows("comes from a page of another site")
	mu.Lock()
	defer mu.Unlock()
	if n := len(d.Votes(q.RunID)); n != 0 || asked < 3 || len(stolen) > 0 {
		t.Errorf("%d votes; of %d requests the thief gets %q", n, asked, stolen)
	}
}
