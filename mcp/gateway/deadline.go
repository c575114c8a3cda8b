package gateway

import (
	"sync"
	"time"
)

// A deadline is that of one direction of a connection. Each that is set is a timer of the runtime, and net/http and the front set
// several for every request, nearly all around something that does not happen: what is to be read is there already, and the client
// takes what is written. So it is the connection's only from when something is read or written, or while that goes on.
type deadline struct {
	set  func(time.Time) error // the connection's own
	part int                   // of the time that is left, by which it may come later: 4 is a quarter; zero: not at all

	mu     sync.Mutex
	wanted time.Time
	there  time.Time     // what was set; zero: none
	slack  time.Duration // by how much it is later than was wanted
	at     int           // how many read or write at the moment
}

// want says what the deadline is from now on. It holds at once for who reads or writes already.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted = t; d.at == 0 {
		return nil
	}
	return d.settle()
}

// begin is called before something is read or written, and end afterwards, unless it failed.
func (d *deadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(); err != nil {
		return err
	}
	d.at++
	return nil
}

func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at--
}

// settle sets what is wanted, unless what is there will do. The lock is held.
func (d *deadline) settle() error {
	later := d.there.Sub(d.wanted)
	if d.there.IsZero() == d.wanted.IsZero() && later >= 0 && later <= d.slack {
		return nil
	}
	if d.there, d.slack = d.wanted, 0; d.part > 0 && !d.wanted.IsZero() {
		d.slack = max(0, time.Until(d.wanted)/time.Duration(d.part))
		d.there = d.wanted.Add(d.slack)
	}
	return d.set(d.there)
}
