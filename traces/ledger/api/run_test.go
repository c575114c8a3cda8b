package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A gate is a handler that lets a call through when it is told to.
type gate struct {
	states.EffectHandler
	reached, open chan struct{}
}

func (g gate) Do(ctx context.Context, wanted states.Command) (states.Event, error) {
	if _, calls := wanted.(*states.CallTool); calls {
		close(g.reached)
		<-g.open
	}
	return g.EffectHandler.Do(ctx, wanted)
}

// starts begins a run whose call is under way until finish is called.
func (d *fixture) starts(content policy.Content) (id string, finish func()) {
	d.TB.Helper()
	world := statestest.NewWorld()
	run := states.NewRun(ledgertest.NewID(d.TB), states.Request{
		Actor: carol, At: d.Clock.Now().Format(policy.TimeForm), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}, statestest.MustBundle(content, nil))
	rec := d.Begin(traces.NewHeader(d.Machine, run), run)
	g := gate{rec.Effects(world.Effects()), make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		o, err := d.Machine.Advance(context.Background(), run, g, rec)
		if err == nil {
			_, err = rec.Finish(context.Background(), o)
		}
		ended <- err
	}()
	<-g.reached
	return run.ID(), func() {
		d.TB.Helper()
		close(g.open)
		check.NoError(d.TB, <-ended)
	}
}

var stepRow = regexp.MustCompile(`<li class="(?:ok|wait|bad|end)"><span class="dot">.*</span> ([a-z]+)</span><div class="why">`)

// TestRunUnderWay: the page has the steps that are recorded, and no others, and then all.
func TestRunUnderWay(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleAuditor)
	run, finish := d.starts(statestest.Content())
	got := b.page("runs/" + run)
	got.want(t, http.StatusOK, "under way: ", "<svg")
	steps := stepRow.FindAllStringSubmatch(got.body, -1)
	if n := len(steps); n == 0 || steps[n-1][1] != string(states.Dispatched) || strings.Contains(got.body, "/trace\"") {
		t.Errorf("the steps under way are %v", steps)
	}
	b.page("runs/"+run+"/trace").want(t, http.StatusConflict, "under way")
	finish()
	got = b.page("runs/" + run)
	got.want(t, http.StatusOK, "<svg", run+"/trace")
	after := stepRow.FindAllStringSubmatch(got.body, -1)
	if n := len(after); n <= len(steps) || after[n-1][1] != string(states.Answered) || strings.Contains(got.body, "under way: ") {
		t.Errorf("the steps in the end are %v", after)
	}
}

// TestEvidence: auditors see where each piece of evidence is in the result, and nobody else sees claims or evidence.
func TestEvidence(t *testing.T) {
	d := newFixture(t)
	run, finish := d.starts(statestest.Content())
	finish()
	const whole = `{"content":[],"structuredContent":{"Security logs are kept for 400 days.":1,` +
		`"body":"%sSecurity logs are kept for 400 days. Access logs are kept for 90 days.","status":"OK"}}`
	auditor := d.signedIn(here, alice, ledger.RoleAuditor)
	for _, tc := range []struct{ name, result, want string }{
		{"in-place", fmt.Sprintf(whole, ""), `"body": &#34;<mark class="evidence" id="evidence-1" title="Evidence 1">Security logs are kept for 400 days.</mark> Access logs`},
		{"elsewhere", fmt.Sprintf(whole, "x"), "This evidence is not in the result"},
		{"escaped", strings.Replace(fmt.Sprintf(whole, ""), "Security logs are kept for 400 days. A", `Sec\u0075rity logs are kept for 400 days. A`, 1),
			`title="Evidence 1">Security logs are kept for 400 days.</mark>`},
		{"no-result", "", "There is none."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d.result = jsontext.Value(tc.result)
			if tc.result == "" {
				d.result = nil
			}
			got := auditor.page("runs/" + run)
			got.want(t, http.StatusOK, strings.ReplaceAll(tc.want, `"body"`, "&#34;body&#34;"))
			if marks := strings.Count(got.body, `<mark class="evidence"`); (marks == 1) != strings.Contains(tc.want, "Evidence 1") {
				t.Errorf("%d pieces of evidence are marked", marks)
			}
		})
	}
	d.result = jsontext.Value(fmt.Sprintf(whole, ""))
	for _, role := range []string{ledger.RoleApprover, ledger.RoleAdmin} {
		got := d.signedIn(here, bob, role).page("runs/" + run)
		got.want(t, http.StatusOK, "Only auditors see results")
		if strings.Contains(got.body, "Security logs") {
			t.Errorf("a person with the role %s sees the evidence", role)
		}
	}
}

// TestWhatIf: a bundle of the log judges the run again, for everybody who may read, and nothing is called or recorded.
func TestWhatIf(t *testing.T) {
	d := newFixture(t)
	run, finish := d.starts(statestest.Content())
	finish()
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("runs/"+run).want(t, http.StatusOK, "The log has no configuration yet")
	denying := statestest.Content()
	denying.Policy = statestest.Policies(rules.Policy{ID: "no", Effect: rules.Deny, Reason: "Not <b>any</b> more."})
	for _, c := range []policy.Content{statestest.Content(), denying} {
		check.NoError(t, d.RecordActivation(t.Context(), statestest.MustBundle(c, nil), ledger.ActivationReason{Cause: ledger.CauseStart}))
	}
	before := len(d.Events(0))
	b.page("runs/"+run).want(t, http.StatusOK, "the active one: ")
	with := func(c policy.Content) string {
		return "runs/" + run + "?bundle=" + url.QueryEscape(string(statestest.MustBundle(c, nil).Digest()))
	}
	b.page(with(denying)).want(t, http.StatusOK, "It would change", "newly-denied", "Not &lt;b&gt;any&lt;/b&gt; more.", "pgfsm ledger what-if "+run+" --bundle ")
	b.page(with(statestest.Content())).want(t, http.StatusOK, "The decision is the same")
	unknown := statestest.Content()
	unknown.Env = "elsewhere"
	b.page(with(unknown)).want(t, http.StatusOK, "The ledger has no such bundle")
	for _, query := range []string{"x", "", "sha256:1"} {
		b.page("runs/"+run+"?bundle="+query).want(t, http.StatusBadRequest)
	}
	if got := d.browser(here).get("/console/" + with(denying)); got.status != http.StatusUnauthorized || strings.Contains(got.body, "newly-denied") {
		t.Errorf("without a session: %d", got.status)
	}
	if n := len(d.Events(0)); n != before {
		t.Errorf("%d events were recorded", n-before)
	}
}

// TestRunWithoutLedger: nobody learns that a record was changed when the ledger only cannot be read.
func TestRunWithoutLedger(t *testing.T) {
	store := &withoutBlobs{Store: ledgertest.NewStore(t)}
	d := newFixtureOn(t, store, here)
	q := d.Hold(1)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("runs/"+q.RunID).want(t, http.StatusOK)
	other := canonical.Sum("bundle", nil)
	for page, lost := range map[string]func(canonical.Digest) bool{ // in any order
		"runs/" + q.RunID: func(canonical.Digest) bool { return true },
		"runs/" + q.RunID + "?bundle=" + string(other): func(d canonical.Digest) bool { return d == other },
	} {
		store.lost = lost
		b.page(page).want(t, http.StatusServiceUnavailable, "The ledger cannot be read now")
	}
}

// withoutBlobs is a store that cannot be read where it lost blobs.
type withoutBlobs struct {
	ledger.Store
	lost, missing func(canonical.Digest) bool // which cannot be read now, and which are not there
}

func (s *withoutBlobs) View(ctx context.Context, do func(ledger.Reader) error) error {
	return s.Store.View(ctx, func(r ledger.Reader) error { return do(blobReader{r, s}) })
}

type blobReader struct {
	ledger.Reader
	*withoutBlobs
}

func (r blobReader) Blob(digest canonical.Digest) (ledger.Blob, error) {
	if r.lost != nil && r.lost(digest) {
		return ledger.Blob{}, ledger.ErrUnavailable
	}
	if r.missing != nil && r.missing(digest) {
		return ledger.Blob{}, ledger.ErrNotFound
	}
	return r.Reader.Blob(digest)
}
