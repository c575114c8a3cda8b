package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/sqlite"
)

// TestReadiness: /readyz and the page of current activity say the same. Only the log has the error.
func TestReadiness(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleAdmin)
	d.call(http.MethodGet, "/readyz", "", "").wantCode(t, 200, "")
	d.handler.Warnings = func() []string { return []string{api.WarnBundleDiffers} }
	d.call(http.MethodGet, "/readyz", "", "").want(t, 200, `"warnings":["bundle_differs"]`)
	b.page("now").want(t, http.StatusOK, "The service is ready", "bundle_differs", "another replica of this ledger has another bundle")

	d.handler.Ready = notReady
	got := d.call(http.MethodGet, "/readyz", "", "")
	got.wantCode(t, 503, api.Unavailable)
	page := b.page("now")
	page.want(t, http.StatusOK, "The service is not ready", "worker_behind", "decided calls cannot be found")
	if strings.Contains(page.body, "The service is ready") || strings.Contains(page.body, "is ready") {
		t.Errorf("the page says ready: %s", page.body)
	}
	if strings.Contains(got.body+page.body, errDisk.Error()) || !strings.Contains(d.notes.String(), errDisk.Error()) {
		t.Errorf("%s, %s, log = %s", got.body, page.body, &d.notes)
	}
	d.call(http.MethodGet, "/healthz", "", "").wantCode(t, 200, "")
}

// A failingStore cannot be read, and says why with words that only the log may have.
type failingStore struct {
	ledger.Store
	cause error
}

func (f failingStore) View(ctx context.Context, do func(ledger.Reader) error) error {
	if f.cause == nil { // it does not answer
		<-ctx.Done()
		return ctx.Err()
	}
	return fmt.Errorf("ledger postgres://pgfsm:secret@db/pgfsm: %w", f.cause)
}

// TestReasons: /readyz needs no token, so it has a stable reason and no words of the store.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		name   string
		cause  error
		worker error // of the worker, at the same time
		want   string
	}{
		{"away", ledger.ErrUnavailable, nil, `["ledger_unavailable"]`},
		{"no-answer", nil, nil, `["ledger_unavailable"]`},
		{"unknown", errDisk, nil, `["ledger_unavailable"]`},
		{"unsettled", ledger.ErrUnsettled, nil, `["ledger_unavailable"]`},
		{"clock-behind", ledger.ErrClockBack, nil, `["ledger_behind"]`},
		{"read-only", sqlite.ErrReadOnly, nil, `["ledger_read_only"]`},
		{"other-schema", sqlite.ErrNewer, nil, `["ledger_schema"]`},
		{"lost", ledger.ErrLost, nil, `["ledger_lost"]`},
		{"fenced", ledger.ErrFenced, nil, `["ledger_fenced"]`},
		{"away-and-the-worker-behind", ledger.ErrUnavailable, errDisk, `["ledger_unavailable","worker_behind"]`},
		{"away-for-the-worker-too", ledger.ErrUnavailable, ledger.ErrUnavailable, `["ledger_unavailable"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			l, err := ledger.Open(t.Context(), failingStore{d.Store, c.cause}, ledger.Options{})
			check.NoError(t, err)
			defer l.Close()
			d.handler.Ledger = l
			if c.worker != nil {
				d.handler.Ready = func(context.Context) []api.NotReady {
					return []api.NotReady{api.NewNotReady(c.worker, api.WorkerBehind)}
				}
			}
			got := d.call(http.MethodGet, "/readyz", "", "")
			got.wantCode(t, 503, api.Unavailable)
			if body := got.body; !strings.Contains(body, `"reasons":`+c.want) || strings.Contains(body, "postgres") {
				t.Errorf("%s, want the reasons %s", body, c.want)
			}
			if c.cause != nil && !strings.Contains(d.notes.String(), "postgres") {
				t.Errorf("the log is %s, want the whole error", &d.notes)
			}
		})
	}
}
