package api_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// A device is how a person uses the console.
type device struct {
	scheme   string
	width    int
	keyboard bool // no mouse
	still    bool // the person has asked for reduced motion
	bare     bool // without JavaScript
}

func (d device) String() string {
	words := map[bool][3]string{false: {"mouse", "motion", "script"}, true: {"keyboard", "still", "bare"}}
	return fmt.Sprintf("%d-%s-%s-%s-%s", d.width, d.scheme, words[d.keyboard][0], words[d.still][1], words[d.bare][2])
}

// thoroughness is PGFSM_CONSOLE, which make console sets: short or all. Without it, one look at each page has to do.
var thoroughness = os.Getenv("PGFSM_CONSOLE")

// devices are a desk, a phone and a browser without scripts; with PGFSM_CONSOLE=all they are all that there can be.
func devices() (all []device) {
	if thoroughness != "all" {
		return []device{{scheme: "light", width: 1280}, {scheme: "dark", width: 360, keyboard: true, still: true}, {scheme: "light", width: 360, bare: true}}
	}
	yesNo := []bool{false, true}
	for _, width := range []int{320, 360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			for _, keyboard := range yesNo {
				for _, still := range yesNo {
					for _, bare := range yesNo {
						all = append(all, device{scheme, width, keyboard, still, bare})
					}
				}
			}
		}
	}
	return all
}

// A traveller is a person with a device.
type traveller struct {
	*tab
	device
	host string
}

func (p *traveller) opens(path string) {
	p.Helper()
	p.do(chromedp.Navigate("http://" + p.host + path))
}

// use presses what a selector finds first.
func (p *traveller) use(selector string) {
	p.Helper()
	if p.keyboard {
		p.press(selector)
	} else {
		p.do(chromedp.Click(chromedp.Search(selector)))
	}
}

// writes writes into a field.
func (p *traveller) writes(selector, text string) {
	p.Helper()
	if p.keyboard {
		p.focus(selector)
	} else {
		p.do(chromedp.Click(chromedp.Search(selector)))
	}
	p.do(chromedp.KeyEvent(text))
}

// comes waits for a text that the page does not have yet. Without scripts a person asks for the page again.
func (p *traveller) comes(text string) {
	p.Helper()
	if p.bare {
		p.do(chromedp.Reload())
	}
	p.shows(text)
}

// journeys are what each kind of person does.
var journeys = []struct {
	name string
	goes func(p *traveller, d *fixture)
}{
	{"approver-approves", approves},
	{"approver-denies", denies},
	{"operator-looks-for-a-denial", looksForADenial},
	{"auditor-audits", audits},
}

// approves takes an approver from the sign-in link to the end of a call.
func approves(p *traveller, d *fixture) {
	link, err := d.NewLink(p.Context(), d.Approver(alice))
	check.NoError(p, err)
	before := d.ask(1, carol, "Clean up", `{"path":"/srv/reports","recursive":false}`, "Delete a folder.")
	d.Cast(ledgertest.Ballot(before, d.Approver(bob)))
	p.opens(api.LinkPath + link)
	p.shows("Sign in as " + alice)
	p.use("main button")
	p.shows("No call is held")
	q := d.ask(2, carol, "Clean up the old reports", `{"note":"<img src=x onerror=hacked()>\u202e","path":"/srv","recursive":true}`, hostile)
	p.comes("0 of 2")
	p.fits("approver-inbox-" + p.device.String())
	p.use("main h2 a")
	p.shows("of 3 arguments differ from the last approved call")
	p.shows(`<img src=x onerror=hacked()>\u202e`)
	p.fits("approver-call-" + p.device.String())
	d.Cast(ledgertest.Ballot(q, d.Approver(bob)))
	p.comes("1 of 2")
	p.writes("#reason", "looks right")
	p.use("button.approve")
	p.shows("pgfsm makes the call within seconds")
	p.shows("looks right")
	p.use("#decide a")
	p.shows("The machine's way")
	p.use("#picture > summary")
	p.until("the machine is drawn", "document.querySelector('figure svg').getBoundingClientRect().width > 200")
	p.fits("approver-run-" + p.device.String())
	if votes := d.Votes(q.RunID); len(votes) != 2 || votes[1].By != alice || votes[1].Reason != "looks right" {
		p.Errorf("the votes are %+v", votes)
	}
	p.opens(api.CallPath + q.RunID) // as a web hook names it
	if p.bare {                     // only a script knows the path of the session
		p.shows("enter your token")
		return
	}
	p.shows("pgfsm makes the call within seconds")
	p.use("nav a")
	p.shows("No call is held")
	p.signsOut()
	p.shows("enter your token")
	p.opens(api.ConsolePath)
	p.shows("enter your token")
}

// denies takes an approver from the URL of a web hook to a denial.
func denies(p *traveller, d *fixture) {
	q := d.Hold(1)
	p.opens(api.CallPath + q.RunID)
	p.shows("enter your token")
	p.writes("#token", d.Token(alice, ledger.RoleApprover))
	p.use("main button")
	p.until("the form is there", "document.querySelector('#decide .deny')")
	p.use("button.deny")
	p.shows("a denial needs a reason")
	p.fits("approver-refused-" + p.device.String())
	p.writes("#reason", "not today")
	p.use("button.deny")
	p.shows("approval_denied")
	if votes := d.Votes(q.RunID); len(votes) != 1 || votes[0].Reason != "not today" {
		p.Errorf("the votes are %+v", votes)
	}
}

// signsIn takes a person to a page by a token.
func (p *traveller) signsIn(d *fixture, name, role string) {
	p.Helper()
	p.opens(api.ConsolePath)
	p.shows("enter your token")
	p.writes("#token", d.Token(name, role))
	p.use("main button")
	p.shows("Inbox")
	p.until(name+" is signed in", fmt.Sprintf("document.querySelector('.me').textContent.includes(%q)", name))
}

// signsOut ends the person's session.
func (p *traveller) signsOut() {
	p.Helper()
	p.use(".me summary")
	p.use(".me button")
}

// looksForADenial takes an operator from the list of runs to why a call was denied.
func looksForADenial(p *traveller, d *fixture) {
	d.play(statestest.Content(), statestest.NewWorld(), carol, statestest.Question)
	denying := statestest.Find(p.T, "policy-denies-by-effect")
	denied := d.play(denying.Content, statestest.NewWorld(), "ci-agent", statestest.Question)
	held := d.Hold(1)
	p.signsIn(d, "olga@example.com", ledger.RoleAdmin)
	p.use("main h2 a")
	p.shows("only approvers vote")
	p.until("there is no form to vote", "!document.querySelector('.approve')")
	p.use("nav a[href$=runs]")
	p.shows(carol)
	if p.width < 768 {
		p.use("#filter > summary")
	}
	p.writes("#code", "policy_denied")
	p.use(".filter button")
	p.until("one run is listed", "document.querySelectorAll('.runs tbody tr').length === 1")
	p.fits("operator-runs-" + p.device.String())
	p.use("tbody a.go")
	p.shows("Policy \"")
	p.shows("policy_denied")
	p.shows("Only auditors see results and traces")
	p.until("the page is of the denied run", fmt.Sprintf("document.querySelector('.crumb').textContent.includes(%q)", denied.RunID))
	p.fits("operator-run-" + p.device.String())
	p.shows("pgfsm ledger show " + denied.RunID)
	if len(d.Votes(held.RunID)) != 0 {
		p.Error("an operator voted")
	}
}

// audits takes an auditor from a run under way to its result and its trace.
func audits(p *traveller, d *fixture) {
	d.result = []byte(`{"content":[{"type":"text","text":"<script>hacked()</script> 42"}]}`)
	q := d.Hold(1)
	p.signsIn(d, "erin@example.com", ledger.RoleAuditor)
	p.use("nav a[href$=runs]")
	p.shows("pending")
	p.use("tbody a.go")
	p.shows("This call waits for a decision")
	p.until("the result is shown", "document.querySelector('#result pre').innerText.includes('<script>hacked()</script> 42')")
	d.Cast(ledgertest.Ballot(q, d.Approver(bob)))
	p.comes(bob + " approved")
	p.until("the vote is in the record", "document.getElementById('record').textContent.includes('approval.approved')")
	p.fits("auditor-run-" + p.device.String())
	p.until("there is a trace to download", "document.querySelector('a[download]').href.endsWith('/trace')")
	p.signsOut()
	p.shows("enter your token")
}

// TestJourneys: each person gets where they want to, with each device.
func TestJourneys(t *testing.T) {
	if thoroughness == "" {
		t.Skip("make console runs this")
	}
	for _, device := range devices() {
		for _, j := range journeys {
			t.Run(j.name+"/"+device.String(), func(t *testing.T) {
				d, host := servesConsole(t)
				p := &traveller{newTab(t, host, device.scheme, device.width), device, host}
				if device.still {
					browsertest.Emulate(t, p.ctx, device.scheme, device.width, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
				}
				if _, err := chromedp.Call(p.ctx, emulation.SetScriptExecutionDisabled,
					emulation.SetScriptExecutionDisabledParams{Value: device.bare}); err != nil {
					t.Fatal(err)
				}
				j.goes(p, d)
				p.until("nothing moves", "document.getAnimations().length === 0")
				p.quiet()
			})
		}
	}
}
