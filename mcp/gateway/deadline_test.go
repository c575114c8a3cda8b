package gateway

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDeadlinesAreSetWhenTheyAreNeeded(t *testing.T) {
	base := time.Now().Add(60 * time.Hour) // nothing here waits for it
	at := func(hours int) time.Time { return base.Add(time.Duration(hours) * time.Hour) }
	const none = -1
	for _, c := range []struct {
		name string
		part int
		do   func(d *deadline)
		want []int // hours behind base; none: taken back
	}{
		{"nobody-reads", 0, func(d *deadline) { d.want(at(1)); d.want(at(2)) }, nil},
		{"it-is-set-before-a-read", 0, func(d *deadline) { d.want(at(1)); d.want(at(2)); d.begin() }, []int{2}},
		{"it-holds-for-the-next-read", 0, func(d *deadline) { d.want(at(1)); d.begin(); d.end(); d.want(at(1)); d.begin() }, []int{1}},
		{"another-is-set", 0, func(d *deadline) { d.want(at(1)); d.begin(); d.end(); d.want(at(2)); d.begin() }, []int{1, 2}},
		{"an-earlier-one-is-set", 0, func(d *deadline) { d.want(at(2)); d.begin(); d.end(); d.want(at(1)); d.begin() }, []int{2, 1}},
		{"it-is-set-during-a-read", 0, func(d *deadline) { d.begin(); d.want(at(1)); d.want(at(2)) }, []int{1, 2}},
		{"it-is-taken-back-during-a-read", 0, func(d *deadline) { d.want(at(1)); d.begin(); d.want(time.Time{}) }, []int{1, none}},
		{"it-is-taken-back-between-reads", 0, func(d *deadline) { d.want(at(1)); d.begin(); d.end(); d.want(time.Time{}) }, []int{1}},
		{"it-is-gone-for-the-next-read", 0, func(d *deadline) { d.want(at(1)); d.begin(); d.end(); d.want(time.Time{}); d.begin() }, []int{1, none}},
		{"there-was-none", 0, func(d *deadline) { d.want(time.Time{}); d.begin() }, nil},
		{"two-at-once", 0, func(d *deadline) { d.begin(); d.begin(); d.end(); d.want(at(1)) }, []int{1}},
		{"it-may-be-late", 4, func(d *deadline) { d.want(at(0)); d.begin() }, []int{15}},
		{"late-will-do", 4, func(d *deadline) { d.want(at(0)); d.begin(); d.end(); d.want(at(14)); d.begin() }, []int{15}},
		{"too-early-will-not", 4, func(d *deadline) { d.want(at(0)); d.begin(); d.end(); d.want(at(20)); d.begin() }, []int{15, 40}},
		{"too-late-will-not", 4, func(d *deadline) { d.want(at(20)); d.begin(); d.end(); d.want(at(0)); d.begin() }, []int{40, 15}},
		{"late-and-taken-back", 4, func(d *deadline) { d.want(at(0)); d.begin(); d.end(); d.want(time.Time{}); d.begin() }, []int{15, none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int
			d := &deadline{part: c.part, set: func(at time.Time) error {
				if at.IsZero() {
					got = append(got, none)
				} else { // the time that is left is a little less than it was when the test began
					got = append(got, int(at.Sub(base).Round(time.Hour)/time.Hour))
				}
				return nil
			}}
			c.do(d)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("it was set to (-want +got)\n%s", diff)
			}
		})
	}
}

// What is over already is over for who reads and writes, and a deadline that has passed does not hold for what comes after it.
func TestDeadlinesOfAConnection(t *testing.T) {
	ours, theirs := pair(t)
	past := time.Unix(1, 0)
	one := make([]byte, 1)
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{{"past", past, false}, {"none", time.Time{}, true}, {"past-again", past, false}, {"far", time.Now().Add(time.Hour), true}} {
		if err := ours.SetDeadline(c.at); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Write(one); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Read(one); (err == nil) != c.ok {
			t.Errorf("%s: Read() = %v", c.name, err)
		}
		if _, err := ours.Write(one); (err == nil) != c.ok {
			t.Errorf("%s: Write() = %v", c.name, err)
		}
	}
	stopped := make(chan error)
	go func() {
		for { // what came before may be read first
			if _, err := ours.Read(one); err != nil {
				stopped <- err
				return
			}
		}
	}()
	if err := ours.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the read", stopped)
}

// pair is a connection as the gateway has it, and its other end.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	places := atMost(on, 1)
	t.Cleanup(func() { _ = places.Close() })
	if theirs, err = net.Dial("tcp", on.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = places.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}
