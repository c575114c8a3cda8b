package api_test

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"pgfsm/internal/identity/connect"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/oauth"
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
	{"person-connects-an-account", connectsAnAccount},
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
				issuer := newAsking(t, d)
				p := &traveller{newTab(t, host, device.scheme, device.width, issuer), device, host}
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

// newAsking makes people connect accounts of the server notes at an authorization server that asks them, and returns its URL.
func newAsking(t *testing.T, d *fixture) (issuer string) {
	idp := identitytest.New(t)
	idp.Clients["notes-client"] = ""
	idp.Override("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if !q.Has("as") {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Sign in</title><link rel="icon" href="data:,"><body>The gateway asks for your notes.<br><a id="allow" href="%[1]s&as=ann">Allow</a> <a id="refuse" href="%[1]s&as=">Refuse</a>`,
				html.EscapeString(r.URL.String()))
			return
		}
		idp.SignIn(q.Get("as"))
		idp.Default(w, r)
	})
	var notes *httptest.Server
	notes = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		identitytest.Answer(w, http.StatusOK, map[string]any{"resource": notes.URL, "authorization_servers": []string{idp.Issuer}})
	}))
	t.Cleanup(notes.Close)
	d.change(func(o *api.Options) {
		o.Connectable = func() *api.Connectable {
			return &api.Connectable{Keys: ledger.SealKeys{bytes.Repeat([]byte{7}, ledger.SealKeyBytes)}, Servers: []api.ConnectableServer{{
				Name: "notes", Resource: notes.URL, OAuth: &connect.Server{
					Client: oauth.Client{ID: "notes-client", Issuer: idp.Issuer}, URL: notes.URL, Scopes: []string{"notes:read"}, HTTP: http.DefaultClient,
				},
			}}}
		}
	})
	return idp.Issuer
}

// connectsAnAccount takes a person from the address in an agent's refusal to a connection. At first the person refuses.
func connectsAnAccount(p *traveller, d *fixture) {
	p.opens("/console/connections")
	p.shows("enter your token")
	p.fits("person-signs-in-" + p.device.String())
	p.writes("#token", d.Token("ann", ledger.RolePerson))
	p.use("main button")
	p.shows("not connected")
	for _, answer := range []string{"#refuse", "#allow"} {
		p.fits("person-connects-" + p.device.String())
		p.use("#server-notes button")
		p.shows("notes:read")
		p.fits("person-goes-on-" + p.device.String())
		p.use("#continue")
		p.shows("The gateway asks for your notes.")
		p.use(answer)
		if answer == "#refuse" {
			p.shows("because the access was refused")
		}
	}
	p.until("the account is connected", "document.querySelector('#server-notes .chip').innerText.trim() === 'connected'")
	p.fits("person-is-connected-" + p.device.String())
	p.use("#server-notes button") // the first one disconnects
	p.shows("not connected")
}
