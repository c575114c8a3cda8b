package e2e

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// list says when there is more than it lists.
func TestApprovalsListLimit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, heldPolicy, "")
	for range 3 {
		h.decided("deny")
	}
	for _, tt := range []struct {
		name, limit string
		rows        int
		more        bool
	}{
		{"fewer-than-there-are", "2", 2, true},
		{"as-many-as-there-are", "3", 3, false},
		{"more-than-there-are", "4", 3, false},
		{"all", "0", 3, false},
		{"at-most", "1000000", 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := h.byDora("approvals", "list", "--status", "denied", "--limit", tt.limit)
			r.Want(t, exitYes)
			rows := strings.Count(r.Stdout, "  denied  ")
			if rows != tt.rows || strings.Contains(r.Stderr, "There are more; --limit 0 lists all.") != tt.more {
				t.Errorf("%d rows, want %d, %s", rows, tt.rows, r.Stderr)
			}
			h.byDora("approvals", "list", "--status", "all", "--limit", tt.limit, "--json").Want(t, exitYes, "/more", strconv.FormatBool(tt.more))
		})
	}
	for _, bad := range []string{"-1", "1000001"} {
		r := h.byDora("approvals", "list", "--limit", bad)
		r.Want(t, exitCould)
		if !strings.Contains(r.Stderr, "--limit is "+bad) {
			t.Errorf("--limit %s: %s", bad, r.Stderr)
		}
	}
}

// A ballot that comes too late has the expiry recorded and the run ended.
func TestApprovalsExpired(t *testing.T) {
	t.Parallel()
	h := newHouse(t, strings.Replace(heldPolicy, "1h", "1s", 1), "")
	run, binding := h.held()
	expires := recorded(t, h.dir)[0].Expires
	soon(t, "it has expired", func() bool { return strings.Contains(h.byDora("approvals", "list").Stdout, ", expired "+expires) })
	r := h.byDora("approvals", "approve", run, "--digest", binding)
	r.Want(t, exitNo)
	if !strings.Contains(r.Stderr, "refused, approval_expired: ") || r.Stdout != "" {
		t.Errorf("approvals approve: %s%s", r.Stdout, r.Stderr)
	}
	if q := recorded(t, h.dir)[0]; q.Status != ledger.Expired || q.State != states.Blocked || q.Ended == "" {
		t.Errorf("the request is %s at %s, ended %q; want %s, %s", q.Status, q.State, q.Ended, ledger.Expired, states.Blocked)
	}
}

// watch prints what waits, and what happens afterwards, until it is interrupted.
func TestApprovalsWatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags []string
		says  func(typ ledger.Type, run string) string
	}{
		{"people", nil, func(typ ledger.Type, run string) string {
			return string(typ) + "  " + strings.Repeat(" ", 18-len(typ)) + run
		}},
		{"programs", []string{"--json"}, func(typ ledger.Type, _ string) string { return `"type":"` + string(typ) + `"` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, heldPolicy, "")
			first, binding := h.held()
			watch, _, stderr := child(t.Context(), "pgfsm", []string{tokenVariable + "=" + h.dora[tokenVariable]},
				append([]string{"approvals", "watch", "-c", h.config}, tt.flags...)...)
			watch.Stdout = nil
			printed, err := watch.StdoutPipe()
			if err := errors.Join(err, watch.Start()); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(printed)
			next := func(typ ledger.Type, run string) {
				t.Helper()
				if !lines.Scan() || !strings.Contains(lines.Text(), tt.says(typ, run)) || !strings.Contains(lines.Text(), run) {
					t.Fatalf("watch prints %q, want %s of %s", lines.Text(), typ, run)
				}
			}
			next(ledger.ApprovalRequested, first)
			second, _ := h.held()
			next(ledger.ApprovalRequested, second)
			h.byDora("approvals", "approve", first, "--digest", binding).Want(t, exitYes)
			next(ledger.ApprovalApproved, first)
			if err := watch.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if lines.Scan() {
				t.Errorf("watch goes on: %q", lines.Text())
			}
			if code := cli.ExitCode(t, watch.Wait()); code != exitYes || stderr.Len() > 0 {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
}
