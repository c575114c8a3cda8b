package api_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	labels "pgfsm/policy/origin"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/tracestest"

	"github.com/go-json-experiment/json/jsontext"
)

// TestRefusedCallIsListed: the filters find a call of a tool that does not exist, and the page marks it.
func TestRefusedCallIsListed(t *testing.T) {
	d := newFixture(t)
	q := d.AskRequest(states.Request{
		Actor: alice, At: statestest.At, Kind: states.KindCall, Text: canonical.Text(`{"args":{"id":42},"server":"crm","tool":"drop_all","type":"call_tool"}`),
	}, statestest.Content())
	b := d.signedIn(here, alice, ledger.RoleAuditor)
	b.page("runs?server=crm&tool=drop_all&text=42").want(t, http.StatusOK, q.RunID, `drop_all <span class="soft">on</span> crm`, "refused before its arguments were valid")
	b.page("runs/"+q.RunID).want(t, http.StatusOK, "crm drop_all (unverified")
}

// TestOnePersonWithTwoNames: the page does not offer a vote that the ledger would refuse to a person of two names.
func TestOnePersonWithTwoNames(t *testing.T) {
	for _, tc := range []struct {
		name string
		same []string
		says string
	}{
		{"requester", []string{alice, ledgertest.Carol}, "This call is not yours to decide"},
		{"approver-who-voted", []string{alice, bob}, "You have voted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, content := newFixture(t), ledgertest.Holding(2)
			content.Identity = &policy.IdentityRules{Same: [][]string{tc.same}}
			q := d.HoldBy(ledgertest.Carol, content)
			d.Cast(ledgertest.Ballot(q, d.Approver(bob)))
			d.signedIn(here, alice, ledger.RoleApprover).page("calls/"+q.RunID).want(t, http.StatusOK, tc.says)
		})
	}
}

// TestOriginsOfACall: beside an argument, approvers read that it stands nowhere, and a program reads it too.
func TestOriginsOfACall(t *testing.T) {
	d := newFixture(t)
	d.task = "nightly"
	q := d.ask(1, alice, "Read it", `{"policy_id":"policy-002"}`, "")
	b := d.signedIn(here, bob, ledger.RoleApprover)
	b.page("calls/"+q.RunID).want(t, http.StatusOK, `<span class="from warn-ink">`, "nowhere in this session</span>", "Nowhere in this session: policy_id.")
	b.page("runs/"+q.RunID).want(t, http.StatusOK, `<span class="from warn-ink">`)
	d.call(http.MethodGet, "/status/"+q.RunID, d.Token("olga", ledger.RoleAuditor), "").want(t, http.StatusOK,
		`"origins":[{"at":"/policy_id","from":"nowhere in this session","origin":"none","role":"target"}]`)
}

func TestVoteAgain(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(2)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	for range 2 { // a double click
		b.vote(q, "approve", "fine").want(t, http.StatusSeeOther)
	}
	b.page("calls/"+q.RunID).want(t, http.StatusOK, "You have voted", "1 of 2")
	b.vote(q, "deny", "changed my mind").want(t, http.StatusConflict, "one person has one vote")
	c := d.signedIn(there, bob, ledger.RoleApprover)
	c.vote(q, "deny", "  ").want(t, http.StatusUnprocessableEntity, "a denial needs a reason", `aria-describedby="reason-error" autofocus>`, `id="reason-error"`)
	c.vote(q, "approve", "also fine").want(t, http.StatusSeeOther)
	c.page("calls/"+q.RunID).want(t, http.StatusOK, "pgfsm makes the call within seconds", "also fine")
	if len(d.Votes(q.RunID)) != 2 || len(d.voted) < 2 {
		t.Errorf("votes: %v; told of %v", d.Votes(q.RunID), d.voted)
	}
}

// ask has an actor ask for a call with these arguments, of a tool with this description.
func (d *fixture) ask(quorum int, actor, text, args, description string) ledger.RunRow {
	d.TB.Helper()
	world := statestest.NewWorld()
	page := string(canonical.MustSorted(map[string]any{"tools": []any{map[string]any{
		"name": statestest.Tool, "description": description, "inputSchema": map[string]any{"type": "object", "additionalProperties": true},
	}}}))
	listed := &states.ToolsListed{Servers: statestest.Listings(page)}
	world.Listed = []states.Event{listed, listed}
	world.Plan = &states.Completed{Content: canonical.Text(fmt.Sprintf(
		`{"type":"call_tool","server":%q,"tool":%q,"args":%s}`, statestest.Server, statestest.Tool, args))}
	content := ledgertest.Holding(quorum)
	if d.task != "" { // where the entry's id comes from decides
		content.Labels = &labels.Labels{Roles: []labels.RoleLabel{{Server: statestest.Server, Tool: statestest.Tool, Target: []string{"policy_id"}}}}
		content.Policy.Policies[0].Effect, content.Policy.Policies[0].RequireApprovalIf = rules.Allow, "!found()"
	}
	content.Limits.PlanBytes, content.Input.MaxBytes = 1<<20, 1<<20
	q := d.play(content, world, actor, text)
	if q.Status != ledger.Pending {
		d.TB.Fatalf("the call is %s, want a held one", q.Status)
	}
	return q
}

// play has an actor ask for something, as far as it comes without people.
func (d *fixture) play(content policy.Content, world *statestest.World, actor, text string) ledger.RunRow {
	d.TB.Helper()
	return d.Play(d.id(), states.Request{
		Actor: actor, At: d.Clock.Now().Format(policy.TimeForm), Kind: states.KindAsk, Task: d.task, Text: canonical.Text(text),
	}, content, world)
}

// hostile is text that agents and servers may send.
const hostile = `</pre></textarea><script>hacked()</script><img src=x onerror=hacked()>"'{{.}} javascript:hacked() ` +
	"\u202edrowssap\u202c\u200b\u2066x\u2069\ufeff\u00ad\u001b[31mred\u0000\r\n\t" + `<form action=/console/sign-out>Approved by the console`

// TestHostileText: whatever agents and servers send is text, on every page, and each character that does not show is marked.
func TestHostileText(t *testing.T) {
	d := newFixture(t)
	quoted := string(canonical.MustSorted(hostile))
	args := fmt.Sprintf(`{"a":%s,%s:[{"deep":%s},1.5e3,true,null,{},[]]}`, quoted, quoted, quoted)
	q := d.ask(1, carol, hostile, args, hostile)
	d.result = jsontext.Value(`{"content":[{"text":` + quoted + `}]}`)
	a := d.signedIn(here, alice, ledger.RoleApprover)
	pages := map[string]reply{
		"inbox": a.page(""), "call": a.page("calls/" + q.RunID), "runs": a.page("runs?actor=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE&since=24h"),
		"bad-filter": a.page("runs?since=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE"), "refused": a.vote(q, "deny", ""),
		"refused-reason": a.vote(ledger.RunRow{RunID: q.RunID, Binding: canonical.Sum("x", nil)}, "approve", hostile),
	}
	a.vote(q, "deny", hostile).want(t, http.StatusSeeOther)
	auditor := d.signedIn(here, bob, ledger.RoleAuditor)
	pages["denied"], pages["run"] = a.page("calls/"+q.RunID), auditor.page("runs/"+q.RunID)
	for _, page := range []string{"log", "log/2", "log/0", "log?by=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE", "log?type=%3Cscript%3Ehacked()%3C/script%3E%E2%80%AE"} {
		pages[page] = auditor.page(page)
	}
	for name, got := range pages { // in any order
		t.Run(name, func(t *testing.T) {
			if name != "refused-reason" && visible.Lines(got.body) != got.body { // the browser gets back what its person wrote
				t.Errorf("there are characters that do not show: %q", got.body)
			}
			for _, bad := range []string{"<script>", "<img", "<form action=/", "</pre></textarea>", `onerror=hacked()>"`} {
				if strings.Contains(got.body, bad) {
					t.Errorf("the page has %s: %s", bad, got.body)
				}
			}
			if n := strings.Count(got.body, "<script"); n != 1 {
				t.Errorf("%d scripts, want the console's own", n)
			}
		})
	}
	for _, name := range []string{"call", "run", "log/2"} {
		pages[name].want(t, http.StatusOK, `<mark class="odd">\u202e</mark>drowssap<mark class="odd">\u202c\u200b\u2066</mark>`, "&lt;script&gt;hacked()")
	}
}

func TestHugeAndDeepArguments(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 30) + `"down here"` + strings.Repeat(`]}`, 30)
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, `"k%d":%d,`, i, i)
	}
	for _, tc := range []struct {
		name, args string
		says       []string
		atMost     int
	}{
		{"deep", `{"x":` + deep + `}`, []string{"down here"}, 64 << 10},
		{"many", `{` + many.String() + `"z":"the last"}`, []string{"These are not all values", "the last"}, 512 << 10},
		{"long", `{"x":"` + strings.Repeat("long ", 100_000) + `END"}`, []string{"END", "These are not all values"}, 2 << 20},
		{"long-names", `{"` + strings.Repeat("n", 100_000) + `":[` + strings.Repeat(`"v",`, 1000) + `"w"]}`, []string{"These are not all values"}, 2 << 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newFixture(t)
			q := d.ask(1, carol, "do it", tc.args, "")
			got := d.signedIn(here, alice, ledger.RoleApprover).page("calls/" + q.RunID)
			got.want(t, http.StatusOK, tc.says...)
			if len(got.body) > tc.atMost {
				t.Errorf("the page has %d bytes, want at most %d", len(got.body), tc.atMost)
			}
		})
	}
}

func TestCallShowsWhatDiffers(t *testing.T) {
	d := newFixture(t)
	first := d.ask(1, carol, "first", `{"gone":1,"path":"/srv/a","same":true}`, "")
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("calls/"+first.RunID).want(t, http.StatusOK, "No call of this tool was approved before")
	b.vote(first, "approve", "").want(t, http.StatusSeeOther)
	second := d.ask(1, carol, "second", `{"new":[1],"path":"/etc/passwd","same":true}`, "")
	got := b.page("calls/" + second.RunID)
	got.want(t, http.StatusOK, "3 of 4 arguments differ from the last approved call",
		`<li class="changed"><span class="name">path</span><span><span class="value">/etc/passwd</span><span class="was">was <del>/srv/a</del></span></span>`,
		`<li class="changed"><span class="name">/new/0</span><span><span class="value">1</span><span class="was">new</span></span>`,
		`<li class="changed"><span class="name">gone</span><span><span class="was">not any more: <del>1</del></span></span>`,
		`<li><span class="name">same</span>`, "runs/"+first.RunID)
	third := d.ask(1, carol, "third", `{"gone":1,"path":"/srv/a","same":true}`, "")
	b.page("calls/"+third.RunID).want(t, http.StatusOK, "The arguments are the same as those of the last approved call", "Earlier calls of "+carol)
}

// TestDeniedRunSaysWhy: the page of a run that an approver denied begins with the reason, also before a gateway has ended the run.
func TestDeniedRunSaysWhy(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.vote(q, "deny", "not in this window").want(t, http.StatusSeeOther)
	got := b.page("runs/" + q.RunID)
	got.want(t, http.StatusOK, "<b>denied: <code>approval_denied</code></b><p>Denied by "+alice+": not in this window</p>", "What to do: ")
}

// TestPartlyComparedArguments: of two calls with more arguments than the page lists, it does not say that an argument is new or gone.
func TestPartlyComparedArguments(t *testing.T) {
	d := newFixture(t)
	args := func(first string) string {
		text := `{"` + first + `":0`
		for i := range 600 {
			text += fmt.Sprintf(`,"k%03d":%d`, i, i)
		}
		return text + "}"
	}
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.vote(d.ask(1, carol, "first", args("zz"), ""), "approve", "").want(t, http.StatusSeeOther)
	got := b.page("calls/" + d.ask(1, carol, "second", args("aa"), "").RunID)
	got.want(t, http.StatusOK, "Not all arguments were compared")
	for _, wrong := range []string{"not any more", `<span class="was">new</span>`} {
		if strings.Contains(got.body, wrong) {
			t.Errorf("the page says %q of an argument that it may not list", wrong)
		}
	}
}

// TestInboxWithAChangedRecord: one call whose bundle is lost does not hide the others.
func TestInboxWithAChangedRecord(t *testing.T) {
	store := &withoutBlobs{Store: ledgertest.NewStore(t)}
	d := newFixtureOn(t, store, here)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	good := d.Hold(1)
	content := ledgertest.Holding(1)
	content.Env = "elsewhere"
	bad := d.HoldBy(carol, content)
	store.missing = func(digest canonical.Digest) bool { return digest == bad.Bundle }
	b.page("").want(t, http.StatusOK, good.RunID, bad.RunID, "its record cannot be read", "You may vote on 1.")
}

// TestCallOfAReplacedDefinition: the page of a held call says that the server has another definition now, so that nobody approves in vain.
func TestCallOfAReplacedDefinition(t *testing.T) {
	d := newFixture(t)
	q, b := d.Hold(1), d.signedIn(here, alice, ledger.RoleApprover)
	for _, tt := range []struct {
		name  string
		now   canonical.Digest
		known bool
		warns bool
	}{
		{"the-same", q.Definition, true, false},
		{"another", canonical.Sum("tool definition", []byte("{}")), true, true},
		{"no-longer-listed", "", true, true},
		{"not-known", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d.handler.Definition = func(server, tool string) (canonical.Digest, bool) {
				if server != q.Server || tool != q.Tool {
					t.Errorf("asked for %s %s", server, tool)
				}
				return tt.now, tt.known
			}
			page := b.page("calls/" + q.RunID)
			if got := strings.Contains(page.body, "The server has replaced the definition of this tool"); got != tt.warns {
				t.Errorf("the page warns: %t, want %t: %s", got, tt.warns, page.body)
			}
		})
	}
}

// TestCallShowsWhatAnApprovalBinds: the page has each row of what an approval binds. TestBoundRows in package present shows that each
// bound field is in a row.
func TestCallShowsWhatAnApprovalBinds(t *testing.T) {
	d := newFixture(t)
	content := ledgertest.Holding(2)
	content.Risk = statestest.Content().Risk
	content.Policy.Policies[0].Fresh = 5 * time.Minute.Milliseconds()
	q := d.HoldBy(ledgertest.Carol, content)
	page := d.signedIn(here, alice, ledger.RoleApprover).page("calls/" + q.RunID)
	page.want(t, http.StatusOK)
	var held present.HeldCall
	d.Inspect(func(r ledger.Reader) (err error) {
		held, err = present.ReadHeldCall(r, tracestest.Replayer(d.Machine, nil), q.RunID)
		return err
	})
	rows := held.BoundRows()
	if len(rows) < 14 {
		t.Errorf("only %d rows are bound: the test is blind: %v", len(rows), rows)
	}
	for _, row := range rows {
		_, shown, found := strings.Cut(page.body, "<dt>"+row.Name+"</dt><dd>")
		shown, _, _ = strings.Cut(shown, "</dd>")
		if !found || !strings.Contains(shown, html.EscapeString(row.Value)) {
			t.Errorf("the page shows %s as %q, want %q", row.Name, shown, row.Value)
		}
	}
}
