package ledger_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// electorateVariable names the ledger of a process that votes, where there is one.
const electorateVariable = "PGFSM_ELECTORATE"

// Of two processes, each has so many people.
const electorate = 32

// A round is what the processes are told: everybody votes about one request.
type round struct {
	Run     string           `json:"run"`
	Binding canonical.Digest `json:"binding"`
	First   bool             `json:"first"` // those with odd numbers deny in the first process, and the others in the second
}

// A count is what a process tells of a round.
type count struct {
	Approved int      `json:"approved"` // were told that their approval counts
	Denied   int      `json:"denied"`   // were told that their denial counts
	Late     int      `json:"late"`     // were told that it is decided
	Statuses []string `json:"statuses"` // that those whose vote counts were told
	Faults   []string `json:"faults"`
}

// TestElectorate is what each of the processes does that [TestVoteOfTwoProcesses] starts.
func TestElectorate(t *testing.T) {
	url := os.Getenv(electorateVariable)
	if url == "" {
		t.Skip("only where another test asks for it")
	}
	l := onURL(t, url)
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		t.Fatal("nobody says who votes")
	}
	var callers []ledger.Caller
	for _, text := range strings.Fields(in.Text()) {
		c, err := l.Authenticate(context.Background(), text)
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, c)
	}
	out := json.NewEncoder(os.NewFile(3, "counts"))
	for in.Scan() {
		var r round
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if err := out.Encode(r.votes(l, callers)); err != nil {
			t.Fatal(err)
		}
	}
}

// votes has everybody vote at once.
func (r *round) votes(l *ledger.Ledger, callers []ledger.Caller) (c count) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range callers {
		v := ledger.Ballot{
			Run: r.Run, Binding: r.Binding, By: callers[i], Approve: (i%2 == 0) == r.First, Reason: fmt.Sprintf("person %d says so", i),
			Key: fmt.Sprintf("key %d", i),
		}
		all.Go(func() {
			q, err := l.Vote(context.Background(), v)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && v.Approve:
				c.Approved++
			case err == nil:
				c.Denied++
			case errors.Is(err, ledger.ErrDecided):
				c.Late++
				return
			default:
				c.Faults = append(c.Faults, err.Error())
				return
			}
			c.Statuses = append(c.Statuses, string(q.Status))
		})
	}
	all.Wait()
	return c
}

// onURL is the ledger of a URL, with the machine's time.
func onURL(t *testing.T, url string) *ledger.Ledger {
	t.Helper()
	store := ledgertest.OpenURL(t, url)
	l, err := ledger.Open(context.Background(), store, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// A voter is a process that votes, or does something else at the same time as others.
type voter struct {
	in     io.Writer
	tell   *json.Encoder
	counts *json.Decoder
}

func (c *desk) voter(url string, tokens []string) *voter {
	c.TB.Helper()
	v := c.process("^TestElectorate$", electorateVariable+"="+url)
	if _, err := fmt.Fprintln(v.in, strings.Join(tokens, " ")); err != nil {
		c.TB.Fatal(err)
	}
	return v
}

// process starts the test's binary again for a test that does something only there, as a variable says. It ends with this one.
func (c *desk) process(test, variable string) *voter {
	c.TB.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+test)
	cmd.Env = append(os.Environ(), variable)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	in, err := cmd.StdinPipe()
	if err != nil {
		c.TB.Fatal(err)
	}
	counts, theirs, err := os.Pipe()
	if err != nil {
		c.TB.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		c.TB.Fatal(err)
	}
	theirs.Close()
	c.TB.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			c.TB.Errorf("a process of %s: %v\n%s", test, err, said.String())
		}
		counts.Close()
	})
	return &voter{in, json.NewEncoder(in), json.NewDecoder(counts)}
}

// 64 people approve and deny one request at the same time, from two processes on one file. Each round has exactly one
// decision, and everybody is told what stands in the ledger.
func TestVoteOfTwoProcesses(t *testing.T) {
	url := ledgertest.NewURL(t)
	c := deskAtURL(t, url, ledgertest.NewClock(t))
	c.Clock.ToNow()
	var tokens []string
	for i := range 2 * electorate {
		tokens = append(tokens, c.Token(fmt.Sprintf("person-%d", i), ledger.RoleApprover))
	}
	voters := []*voter{c.voter(url, tokens[:electorate]), c.voter(url, tokens[electorate:])}
	decided := make(map[ledger.Status]int)
	for n := range rounds() {
		quorum := 1 + n%3
		content := ledgertest.Holding(quorum)
		content.Policy.Policies[0].Approvers = nil // any approver
		c.Clock.ToNow()
		q := c.HoldBy(carol, content)
		for i, v := range voters {
			if err := v.tell.Encode(round{Run: q.RunID, Binding: q.Binding, First: i == 0}); err != nil {
				t.Fatal(err)
			}
		}
		var sum count
		for _, v := range voters {
			var c count
			if err := v.counts.Decode(&c); err != nil {
				t.Fatalf("round %d: %v", n, err)
			}
			sum = sum.plus(c)
		}
		q = c.Request(q.RunID)
		c.once(n, quorum, q, sum)
		decided[q.Status]++
	}
	t.Logf("%d approved, %d denied", decided[ledger.Approved], decided[ledger.Denied])
}

func (c count) plus(d count) count {
	return count{
		c.Approved + d.Approved, c.Denied + d.Denied, c.Late + d.Late, append(c.Statuses, d.Statuses...), append(c.Faults, d.Faults...),
	}
}

// once checks that a round has one decision, and that everybody was told so.
func (c *desk) once(n, quorum int, q ledger.Request, sum count) {
	c.TB.Helper()
	cast := c.Votes(q.RunID)
	approved, denied := 0, 0
	for _, v := range cast {
		if v.Outcome == policy.VoteApprove {
			approved++
		} else {
			denied++
		}
	}
	told := 0
	for _, s := range sum.Statuses {
		if s == string(ledger.Approved) || s == string(ledger.Denied) {
			told++
			if s != string(q.Status) {
				c.TB.Errorf("round %d: somebody was told %s, and the request is %s", n, s, q.Status)
			}
		}
	}
	good := q.Status == ledger.Approved && approved == quorum && denied == 0 || q.Status == ledger.Denied && approved < quorum && denied == 1
	switch {
	case !good:
		c.TB.Errorf("round %d: %d approvals and %d denials of quorum %d count, and the request is %s", n, approved, denied, quorum, q.Status)
	case sum.Approved != approved || sum.Denied != denied || told != 1:
		c.TB.Errorf("round %d: %d approvals and %d denials count; people were told %+v", n, approved, denied, sum)
	case sum.Approved+sum.Denied+sum.Late != 2*electorate || len(sum.Faults) > 0:
		c.TB.Errorf("round %d: of %d people some were told neither: %+v", n, 2*electorate, sum)
	}
}

// rounds is how often everybody votes.
func rounds() int {
	if os.Getenv("PGFSM_SOAK") != "" {
		return 1000
	}
	return 30
}
