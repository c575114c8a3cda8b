package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// The reloads under load. A thousand take minutes, so by default there are few; make reload asks for all.
const (
	reloadsWanted   = "PGFSM_RELOADS"
	reloadsDefault  = 24
	reloadSessions  = 32
	callsEachReload = 32 // that are begun beside a reload
)

func reloadCount(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv(reloadsWanted)
	if !set {
		return reloadsDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 3 {
		t.Fatalf("%s is %q: want a number, at least 3", reloadsWanted, text)
	}
	return n
}

// TestReloadUnderLoad reloads a good, a broken and a stricter configuration in turn while sessions call two servers; one of them has other
// settings in the stricter configuration, so that its connections are replaced. Every call is answered, and decided as the bundle of its
// record decides.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	reloads := reloadCount(t)
	echo, more := mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools)), mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))
	for _, u := range []*mcptest.Server{echo, more} {
		u.Arguments = func([]byte) string { return mcptest.OneText }
		u.Came = make(chan string) // nobody listens
	}
	config := func(timeout string) string {
		return fmt.Sprintf("version: 1\nservers:\n  echo: {type: http, url: %q}\n  more: {type: http, url: %q, timeout: %s}\n"+
			"allowlist: allowlist.json\n%s", echo.URL, more.URL, timeout, inOffice)
	}
	o := &office{dir: clitest.Folder(t, "pgfsm.yaml", config("30s"), "policy.yaml", openLook, "allowlist.json", `{"echo": ["look"], "more": ["look"]}`)}
	o.served = serve(t, o.dir)
	o.ci = makeToken(t, o.config, "agent", "ci")
	admin := makeToken(t, o.config, "admin", "root")
	activated := 1 // at the start

	var answers, allowed, denied, other atomic.Int32
	work := make(chan int, callsEachReload)
	var sessions sync.WaitGroup
	for range reloadSessions {
		a := o.agent("/mcp", o.ci)
		sessions.Go(func() {
			for n := range work {
				got := a.call([]string{"echo__look", "more__look"}[n%2], fmt.Sprintf(`{"n":%d}`, n))
				answers.Add(1)
				switch got.code() {
				case "hi":
					allowed.Add(1)
				case "policy_denied":
					denied.Add(1)
				default:
					if other.Add(1) < 10 {
						t.Errorf("call %d is answered with %s", n, got.Raw)
					}
				}
			}
		})
	}
	kinds := []struct {
		config, policy string
		status         int
	}{
		{config("30s"), openLook, http.StatusOK}, {config("30s"), openLook + "  - broken", http.StatusUnprocessableEntity}, {config("31s"), denyLook, http.StatusOK},
	}
	begun, calls := time.Now(), 0
	var longest time.Duration
	for n := range reloads {
		kind := kinds[n%len(kinds)]
		o.replaces(t, "pgfsm.yaml", kind.config)
		o.replaces(t, "policy.yaml", kind.policy)
		for range callsEachReload {
			calls++
			work <- calls
		}
		at := time.Now()
		resp, err := send(t.Context(), http.MethodPost, o.admin+"/reload", http.Header{"Authorization": {"Bearer " + admin}}, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, o.stderr)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if kind.status == http.StatusOK && n > 0 { // the first finds what the gateway has started with
			activated++
		}
		if longest = max(longest, time.Since(at)); err != nil || resp.StatusCode != kind.status {
			t.Fatalf("reload %d: %d %s, want %d", n, resp.StatusCode, body, kind.status)
		}
	}
	close(work)
	sessions.Wait()
	took := time.Since(begun)
	o.stop(t, exitYes)
	verifies(t, o.dir)

	byBundle := o.judgedByOne(t, activated)
	t.Logf("%d reloads in %v, the longest %v; %d calls of %d sessions, %d allowed, %d denied; runs by bundle: %v",
		reloads, took.Round(time.Millisecond), longest.Round(time.Millisecond), calls, reloadSessions, allowed.Load(), denied.Load(), byBundle)
	if int(answers.Load()) != calls || other.Load() > 0 {
		t.Errorf("%d of %d calls were answered, %d of them by neither rule", answers.Load(), calls, other.Load())
	}
	if made := echo.Calls.Load() + more.Calls.Load(); made != allowed.Load() || int(allowed.Load()) != byBundle["executed"] || int(denied.Load()) != byBundle["denied"] {
		t.Errorf("the servers got %d calls, %d were allowed and %d denied; the ledger has %v", made, allowed.Load(), denied.Load(), byBundle)
	}
	if allowed.Load() == 0 || denied.Load() == 0 {
		t.Error("one of the bundles has judged no call")
	}
}

// judgedByOne holds each run of the ledger to the bundle that its record names, and returns how many there are by outcome.
func (o *office) judgedByOne(t *testing.T, wantActivations int) map[string]int {
	t.Helper()
	n := make(map[string]int)
	policies := make(map[string]string) // by bundle: its only policy
	inLedger(t, o.dir, func(r ledger.Reader) error {
		activated := 0
		for _, err := range r.EntriesOfType(ledger.BundleActivated, 0) {
			if err != nil {
				return err
			}
			activated++
		}
		if activated != wantActivations {
			t.Errorf("the log has %d activations, want %d", activated, wantActivations)
		}
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			id := policies[string(q.Bundle)]
			if id == "" {
				c, err := ledger.BundleContent(r, q.Bundle)
				if err != nil {
					return err
				}
				id = c.Policy.Policies[0].ID
				policies[string(q.Bundle)] = id
			}
			status := map[string]ledger.Status{"free": ledger.Executed, "closed": ledger.Denied}[id]
			if q.Policy != id || q.Status != status {
				t.Errorf("run %s of the bundle with the policy %q was decided by %q, and is %s %s", q.RunID, id, q.Policy, q.Status, q.Code)
			}
			n[strings.ToLower(string(q.Status))]++
		}
		return nil
	})
	return n
}
