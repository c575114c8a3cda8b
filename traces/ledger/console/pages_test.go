package console_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/browsertest"
	"pgfsm/golden"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/console"
	"pgfsm/traces/ledger/ledgertest"
)

// everyPage are the pages of the console, for tests of what holds on all of them. {held}, {run} and {link} are those of a scene.
var everyPage = []struct {
	name string
	role string // of the person who looks; empty: nobody is signed in
	path string // below the session's pages
	says string // part of its text
}{
	{"sign-in", "", "sign-in", "enter your token"},
	{"link", "", "link/{link}", "This link begins a session"},
	{"inbox", ledger.RoleApprover, "", "0 of 2"},
	{"call", ledger.RoleApprover, "calls/{held}", "What differs"},
	{"runs", ledger.RoleAuditor, "runs", "policy_denied"},
	{"run", ledger.RoleAuditor, "runs/{run}", "kept for 400 days"},
	{"error", ledger.RoleApprover, "runs/{nowhere}", "The ledger has no such run"},
}

// A scene is a console with something to see on each page, the same each time.
type scene struct {
	*desk
	host  string
	names *strings.Replacer // of the runs in paths
}

func newScene(t *testing.T) *scene {
	t.Helper()
	d, host := serves(t)
	ids := 0
	d.id = func() string {
		ids++
		return fmt.Sprintf("01a20971-b460-7b5f-abef-%012d", ids)
	}
	d.result = jsontext.Value(`{"content":[{"type":"text","text":"Security logs are kept for 400 days."}],"isError":false}`)
	const tool = "Returns an entry of the policy base."
	voter := d.Approver(bob)
	first := d.ask(1, carol, "Summarize policy policy-002", `{"drafts":false,"policy_id":"policy-002"}`, tool)
	d.Cast(ledgertest.Ballot(first, voter))
	d.Clock.Add(9 * time.Minute)
	denied := d.ask(1, "ci-agent", "Read every policy", `{"drafts":true,"policy_id":"*"}`, tool)
	no := ledgertest.Ballot(denied, voter)
	no.Approve, no.Reason = false, "Drafts are for their authors."
	d.Cast(no)
	d.Clock.Add(4 * time.Minute)
	made := d.play(statestest.Content(), statestest.NewWorld(), carol, statestest.Question)
	d.Clock.Add(time.Minute)
	refusing := statestest.Find(t, "policy-denies-by-effect")
	d.play(refusing.Content, statestest.NewWorld(), "ci-agent", statestest.Question)
	d.Clock.Add(time.Minute)
	d.ask(2, "ci-agent", "What does policy-004 say?", `{"drafts":false,"policy_id":"policy-004"}`, tool)
	d.Clock.Add(time.Minute)
	held := d.ask(2, carol, "Summarize the next version of policy-007", `{"drafts":true,"note":"the file\u202efdp.exe","policy_id":"policy-007"}`, tool)
	link, err := d.NewLink(t.Context(), d.Approver(alice))
	if err != nil {
		t.Fatal(err)
	}
	return &scene{d, host, strings.NewReplacer("{held}", held.RunID, "{run}", made.RunID, "{link}", link, "{nowhere}", ledgertest.NewID(t))}
}

// enters gives the browser the session of a person of a role.
func (s *scene) enters(b *tab, role string) (base string) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		b.Fatal(err)
	}
	if role == "" {
		return console.Path
	}
	name := map[string]string{ledger.RoleAuditor: "erin@example.com"}[role]
	if name == "" {
		name = alice
	}
	v := s.signedIn(s.host, name, role)
	cookie, value, _ := strings.Cut(v.cookie, "=")
	if _, err := chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
		Name: cookie, Value: value, URL: "http://" + s.host + v.base, Path: v.base,
	}); err != nil {
		b.Fatal(err)
	}
	return v.base
}

// TestEveryPageInABrowser: no page is wider than a phone, has what axe-core finds serious, or breaks its policy.
func TestEveryPageInABrowser(t *testing.T) {
	s := newScene(t)
	b := newTab(t, s.host, "light", 1280)
	for _, p := range everyPage {
		base := s.enters(b, p.role)
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{320, 360, 1280} {
				name := fmt.Sprintf("%s-%s-%d", p.name, scheme, width)
				t.Run(name, func(t *testing.T) {
					b := &tab{T: t, ctx: b.ctx, complaints: b.complaints}
					browsertest.Emulate(t, b.ctx, scheme, width)
					b.do(chromedp.Navigate("http://" + s.host + base + s.names.Replace(p.path)))
					b.shows(p.says)
					if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](
						"document.querySelectorAll('details').forEach((d) => { d.open = true; }), 0")); err != nil {
						t.Fatal(err)
					}
					b.fits(name)
					if found := browsertest.Axe(t, b.ctx, "../../../interop/node_modules"); len(found) > 0 {
						t.Errorf("axe-core finds:\n%s", strings.Join(found, "\n"))
					}
					b.quiet()
				})
			}
		}
	}
}

// maxPicture bounds the bytes of a picture in the docs.
const maxPicture = 120 << 10

// process is the id of a process, which differs each time, and not that of a run of a scene.
var process = regexp.MustCompile(`01[0-9a-f]{6}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[1-9a-f][0-9a-f]{11}`)

// TestDocsPictures: the pictures of the pages in the docs show what the pages say. Pixels depend on the machine's fonts, so the texts are
// compared.
func TestDocsPictures(t *testing.T) {
	const guide = "../../../docs/guide/"
	s := newScene(t)
	b := newTab(t, s.host, "light", 1000)
	for _, p := range everyPage {
		t.Run(p.name, func(t *testing.T) {
			b := &tab{T: t, ctx: b.ctx, complaints: b.complaints}
			b.do(chromedp.EmulateViewport(1000, 300), chromedp.Navigate("http://"+s.host+s.enters(b, p.role)+s.names.Replace(p.path)))
			b.shows(p.says)
			text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.querySelector('main').innerText"))
			if err != nil {
				t.Fatal(err)
			}
			if golden.Updating() {
				browsertest.Picture(t, b.ctx, guide+"console-"+p.name+".png", true)
			}
			golden.File(t, "testdata/pages/"+p.name+".txt", process.ReplaceAllString(text, "(process)")+"\n")
			shown(t, guide+"console.md", guide, "console-"+p.name+".png")
			if p.name == "call" { // the end of what approvers see on a phone
				b.do(chromedp.EmulateViewport(360, 640), chromedp.Evaluate[chromedp.Void]("document.querySelector('h3').scrollIntoView()"))
				if golden.Updating() {
					browsertest.Picture(t, b.ctx, guide+"console-phone.png", false)
				}
				shown(t, "../../../README.md", guide, "console-phone.png")
			}
		})
	}
}

// shown checks that a page of the docs shows a picture, which is in a folder.
func shown(t *testing.T, page, folder, picture string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), picture) {
		t.Errorf("%s does not show %s: %v", page, picture, err)
	}
	if info, err := os.Stat(folder + picture); err != nil || info.Size() > maxPicture {
		t.Errorf("%s is missing, or too large: %v %v", picture, info, err)
	}
}
