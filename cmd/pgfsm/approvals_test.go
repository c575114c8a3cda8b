package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"

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
			ctx, interrupt := context.WithCancel(t.Context())
			read, write := io.Pipe()
			var stderr bytes.Buffer
			ended := make(chan int, 1)
			go func() {
				code := run(ctx, append([]string{"approvals", "watch", "-c", h.config}, tt.flags...), world{
					stdin: strings.NewReader(""), stdout: write, stderr: &stderr,
					getenv: func(name string) (string, bool) { v, ok := h.dora[name]; return v, ok },
				})
				write.Close()
				ended <- code
			}()
			lines := bufio.NewScanner(read)
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
			interrupt()
			if lines.Scan() {
				t.Errorf("watch goes on: %q", lines.Text())
			}
			if code := <-ended; code != exitYes || stderr.Len() > 0 {
				t.Errorf("exit code %d, %s", code, &stderr)
			}
		})
	}
}

// After an approval the text names the processes that make the call.
func TestCallNext(t *testing.T) {
	const rest = "a running pgfsm serve, or pgfsm approvals serve without --no-resume, makes it within seconds. " +
		"If none runs, pgfsm resume r makes it. The approval expires at t."
	for kind, want := range map[string]string{
		states.KindAgent: "The call is not made yet: " + rest,
		states.KindCall:  "The call is not made yet: the command that waits for it (--wait), " + rest,
	} {
		if got := callNext(&ledger.Request{RunID: "r", Kind: kind, Expires: "t"}, "pgfsm resume r"); got != want {
			t.Errorf("callNext() of kind %s = %s\nwant %s", kind, got, want)
		}
	}
}
