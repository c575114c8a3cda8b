package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestWarningsComeWhileACallIsRead: a page that somebody reads says as soon as it is known that the call will not be made, and compares its
// arguments with the call that it names.
func TestWarningsComeWhileACallIsRead(t *testing.T) {
	d, host := servesConsole(t)
	_, token, err := d.CreateToken(t.Context(), ledger.LocalUser("local:root"), carol, ledger.RoleAgent, "")
	check.NoError(t, err)
	first := d.ask(1, carol, "one", `{"amount":1}`, "")
	d.Cast(ledgertest.Ballot(first, d.Approver(bob)))
	later := d.ask(1, carol, "two", `{"amount":2}`, "")
	q := d.ask(2, carol, "three", `{"amount":3}`, "")
	p := &traveller{newTab(t, host, "light", 1000), device{}, host}
	p.signsIn(d, alice, ledger.RoleApprover)
	p.opens("/console/calls/" + q.RunID)
	p.until("the page compares with the first call", "document.querySelector('.args del').textContent === '1'")
	comesBack := chromedp.Evaluate[chromedp.Void]("document.dispatchEvent(new Event('visibilitychange'))")
	d.Cast(ledgertest.Ballot(later, d.Approver(bob)))
	p.do(comesBack)
	p.until("the page names the later call", fmt.Sprintf("document.querySelector('#compared a').href.endsWith(%q)", later.RunID))
	p.until("the page compares with the later call", "document.querySelector('.args del').textContent === '2'")
	_, err = d.RevokeToken(t.Context(), ledger.LocalUser("local:root"), token.ID)
	check.NoError(t, err)
	p.do(comesBack)
	p.shows("This call will not be made, even if approvers agree")
	p.quiet()
}

// TestSignsOfManyArguments: what the page does not list is neither counted nor without a sign.
func TestSignsOfManyArguments(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, `"k%04d":%d,`, i, i)
		}
		return `{"a":1,` + b.String() + `"z":` + last + `}`
	}
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.vote(d.ask(1, carol, "one", many(`"x"`), ""), "approve", "").want(t, http.StatusSeeOther)
	q := d.ask(1, carol, "two", strings.Replace(many(`"\u202ey"`), `"a":1`, `"a":2`, 1), "")
	b.page("calls/"+q.RunID).want(t, http.StatusOK, "in the JSON of the arguments")
	b.page("").want(t, http.StatusOK, "+496 or more")
}

// TestBallotsOfMany: the picture of the votes never looks complete while votes are missing.
func TestBallotsOfMany(t *testing.T) {
	d := newFixture(t)
	content := ledgertest.Holding(1000)
	content.Policy.Policies[0].Approvers = nil
	q := d.HoldBy(carol, content)
	for i := range 8 {
		q = d.Cast(ledgertest.Ballot(q, d.Approver(fmt.Sprintf("v%d@example.com", i))))
	}
	got := d.signedIn(here, alice, ledger.RoleApprover).page("")
	if got.want(t, http.StatusOK, "8 of 1000 votes"); strings.Contains(got.body, `<i class="yes">`) && !strings.Contains(got.body, "<i></i>") {
		t.Errorf("all ballots of the picture are cast: %s", got.body)
	}
}

// TestNamesWithSpaces: two names that differ only in spaces do not look the same, and a name cannot look like a quoted one.
func TestNamesWithSpaces(t *testing.T) {
	d := newFixture(t)
	q := d.ask(1, carol, "do it", `{"path":"/srv","path ":"/etc","\"path \"":"/","a  b":1,"a b":2," ":3,"/a/b":4,"a":{"b":5}}`, "")
	b := d.signedIn(here, alice, ledger.RoleApprover)
	got := b.page("calls/" + q.RunID)
	got.want(t, http.StatusOK)
	for _, name := range []string{`path`, `&#34;path &#34;`, `&#34;\&#34;path \&#34;&#34;`, `&#34;a  b&#34;`, `a b`, `&#34; &#34;`, `/~1a~1b`, `/a/b`} {
		if !strings.Contains(got.body, `<span class="name">`+name+`</span>`) {
			t.Errorf("no argument is named %s: %.1500s", name, got.body[strings.Index(got.body, `<ul class="args">`):])
		}
	}
	b.page("").want(t, http.StatusOK, `<span class="k">&#34; &#34;</span>`)
}

// TestKindsThatAPhoneNeeds: a text that looks like another value says on each screen that it is a text.
func TestKindsThatAPhoneNeeds(t *testing.T) {
	d := newFixture(t)
	q := d.ask(1, carol, "do it", `{"a":"42","b":42,"c":"","d":"null","e":"plain"}`, "")
	got := d.signedIn(here, alice, ledger.RoleApprover).page("calls/" + q.RunID)
	got.want(t, http.StatusOK, `>42</span></span><span class="kind needed">text<`, `>42</span></span><span class="kind">number<`,
		`></span></span><span class="kind needed">text<`, `>null</span></span><span class="kind needed">text<`, `>plain</span></span><span class="kind">text<`)
}

// TestBlankLinesAreASign: a value that hides its end behind blank lines is unusual.
func TestBlankLinesAreASign(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	q := d.ask(1, carol, "do it", `{"note":"looks harmless`+strings.Repeat(`\n \t`, 80)+`rm -rf /","poem":"a\n\nb\n\n\nc\n"}`, "")
	got := b.page("calls/" + q.RunID)
	if got.want(t, http.StatusOK, "Many blank lines: in note."); strings.Contains(got.body, "in note, poem") {
		t.Errorf("a short gap is a sign: %s", got.body)
	}
}

// TestLettersThatLookAlike: a name that looks like another one is unusual; a word of another language is not.
func TestLettersThatLookAlike(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	q := d.ask(1, carol, "do it", `{"path":"/srv","p\u0430th":"/etc","note":"Привет, веб-API: 5 μm, 3 kΩ","url":"https://ex\u0430mple.com"}`, "")
	b.page("calls/"+q.RunID).want(t, http.StatusOK, "Words with letters of two alphabets, which may look alike: p\u0430th (U+0430), ex\u0430mple (U+0430).")
	q = d.ask(1, carol, "do it", `{"note":"Привет, веб-API: 5 μm, 3 kΩ"}`, "")
	if got := b.page("calls/" + q.RunID); strings.Contains(got.body, "two alphabets") {
		t.Errorf("words of one alphabet are a sign: %s", got.body)
	}
}

// TestDeniedInWhichTask: the count of denied calls says which calls it counts.
func TestDeniedInWhichTask(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	content := ledgertest.Holding(1)
	ask := func(task string) ledger.RunRow {
		return d.HoldRequest(states.Request{
			Actor: carol, At: d.Clock.Now().Format(policy.TimeForm), Kind: states.KindAsk, Text: canonical.Text(statestest.Question), Task: task,
		}, content)
	}
	b.vote(ask("t1"), "deny", "no").want(t, http.StatusSeeOther)
	b.page("calls/"+ask("t1").RunID).want(t, http.StatusOK, "1 of the last 1 calls of this requester in this task were denied.")
}

// TestNamesInTheLog: a name with two spaces does not become the name of another person.
func TestNamesInTheLog(t *testing.T) {
	d := newFixture(t)
	content := ledgertest.Holding(1)
	content.Policy.Policies[0].Approvers = nil
	q := d.HoldBy(carol, content)
	mallory := bob + "  denied by nobody"
	d.Cast(ledgertest.Ballot(q, d.Approver(mallory)))
	got := d.signedIn(here, "erin@example.com", ledger.RoleAuditor).page("log")
	if got.want(t, http.StatusOK, mallory); strings.Contains(got.body, bob+": ") {
		t.Errorf("the log names another person: %s", got.body)
	}
}

// TestChangedToolBehindMany: a changed tool is shown, however many tools the server lists before it.
func TestChangedToolBehindMany(t *testing.T) {
	d := newFixture(t)
	c := ledgertest.Holding(1)
	var now [][]byte
	names := []string{}
	for i := range 300 {
		names = append(names, fmt.Sprintf("a%03d", i))
		now = append(now, defined(names[i], "", anyArguments))
	}
	was := defined("zz", "before", anyArguments)
	now, names = append(now, defined("zz", "after", anyArguments)), append(names, "zz")
	c.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: names}}
	c.Pins = []policy.Pin{{Server: statestest.Server, Tool: "zz", Definition: digest(was)}}
	tools := listed(t, c, map[canonical.Digest][]byte{digest(was): was}, now...)
	d.with(c, serving(present.Server{Server: statestest.Server, Status: policy.ServerUp, Since: statestest.At, Asked: statestest.At, Name: "Base", Version: "2. Verified by pgfsm", Tools: tools}))
	d.signedIn(here, alice, ledger.RoleApprover).page("servers").want(t, http.StatusOK, "another definition than the pinned one: zz on "+statestest.Server,
		`id="drift"`, "What changed in zz", `calls itself <b class="theirs">Base 2. Verified by pgfsm</b>`)
}

// TestForgedRow: a row that somebody changed breaks no page and makes no picture.
func TestForgedRow(t *testing.T) {
	for name, forge := range map[string]func(*ledger.RunRow){ // in any order
		"state":      func(q *ledger.RunRow) { q.State = hostile },
		"many-steps": func(q *ledger.RunRow) { q.Steps = 1 << 40 },
		"status":     func(q *ledger.RunRow) { q.Status, q.Ended, q.Code = hostile, q.At, hostile },
		"far-times":  func(q *ledger.RunRow) { q.At, q.Expires = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z" },
		"votes":      func(q *ledger.RunRow) { q.Quorum, q.Agreed = -5, 7 },
		"risk":       func(q *ledger.RunRow) { q.Mode, q.Score = hostile, -1<<30 },
		"names":      func(q *ledger.RunRow) { q.Server, q.Tool, q.Task, q.Env = hostile, hostile, hostile, hostile },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			q := d.Hold(1)
			forge(&q)
			check.NoError(t, d.Store.Update(context.Background(), func(tx ledger.Tx) error { return ledgertest.ReplaceRun(tx, q) }))
			b := d.signedIn(here, "erin@example.com", ledger.RoleAuditor)
			for _, path := range []string{"", "runs", "runs/" + q.RunID, "runs/" + q.RunID + "/audit", "calls/" + q.RunID, "log", "now"} {
				got := b.page(path)
				t.Log(path, got.status)
				plainPage(t, got)
				if strings.Contains(got.body, "-1 more") {
					t.Errorf("%s counts votes below nothing", path)
				}
			}
			if strings.Contains(d.notes.String(), "cannot be shown: template") {
				t.Error(d.notes.String())
			}
		})
	}
}

// plainPage fails if a page has hostile text as markup, or characters that do not show.
func plainPage(t *testing.T, got reply) {
	t.Helper()
	if visible.Lines(got.body) != got.body {
		t.Errorf("there are characters that do not show: %q", got.body)
	}
	for _, bad := range []string{"<script>", "<img", "<form action=/", "</pre></textarea>", `href="javascript:`} {
		if strings.Contains(got.body, bad) {
			t.Errorf("the page has %s: %s", bad, got.body)
		}
	}
}
