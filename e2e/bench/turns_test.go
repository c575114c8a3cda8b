package bench

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// A place is where calls can be sent: a door, and the process behind it whose cost is counted.
type place struct {
	door
	process  *process
	start    func() place         // if it is not there yet
	missing  bool                 // it cannot be there
	beside   []*place             // other replicas, which get a part of the sessions
	database func() time.Duration // processor time of their database; nil: there is none
}

// replicas are the places that share the sessions.
func (p *place) replicas() []*place { return append([]*place{p}, p.beside...) }

// cpu is the processor time of all replicas, and of their database.
func (p *place) cpu() (gateways, database time.Duration) {
	for _, r := range p.replicas() {
		gateways += r.process.usage().cpu
	}
	if p.database != nil {
		database = p.database()
	}
	return gateways, database
}

// A variant is one way to do the calls of a block.
type variant struct {
	name  string
	place *place
	kind  kind
	bars  []bar
}

// A turn is what one variant did in one stretch of time.
type turn struct {
	took     []time.Duration // of each call
	whole    time.Duration   // from the first request to the last answer
	cpu      time.Duration   // of the process, or of all replicas
	database time.Duration   // the same of their database
	own      time.Duration   // the same of this one, which makes the calls
	faults   []error         // one for each caller that stopped
}

func (t *turn) rate() float64 {
	if t.whole <= 0 {
		return 0
	}
	return float64(len(t.took)) / t.whole.Seconds()
}

// A client has one session, and does one call after the other.
type client interface {
	call(kind) (time.Duration, error) // see [door.callTool]
	end() error                       // ends the session
	hangUp()                          // lets go of it without a word
}

// A block is n callers at each place, and turns of the variants with them.
type block struct {
	title    string
	callers  int
	open     func(door) (client, error)
	variants []variant
	turn     time.Duration
	rounds   int
}

func (b *block) heading() string { return b.title + ", " + count(b.callers, "session") }

// A series is the turns of each variant, in the order of the variants; the same round at the same index.
type series [][]turn

// run takes the variants in turns, each round in the next order, until the rounds are done or the time is. One round is
// always done. Sessions are opened before and ended afterwards.
func (b *block) run(until time.Time) (series, error) {
	crowds := map[*place][]client{}
	defer func() {
		for _, crowd := range crowds { // ended in any order
			for _, c := range crowd {
				c.hangUp()
			}
		}
	}()
	for _, v := range b.variants {
		if crowds[v.place] != nil {
			continue
		}
		if v.place.start != nil {
			*v.place = v.place.start()
		}
		crowd, err := gather(b.open, v.place, b.callers)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", b.title, v.name, err)
		}
		crowds[v.place] = crowd
	}
	all := make(series, len(b.variants))
	for i, v := range b.variants { // nothing is measured before everything is warm
		if warm := v.turn(crowds[v.place], b.turn/5); len(warm.faults) > 0 {
			return all, fmt.Errorf("%s, %s, before the first round: %w", b.title, v.name, warm.faults[0])
		}
		all[i] = make([]turn, 0, b.rounds)
	}
	begin := time.Now()
	for round := range b.rounds {
		if round > 0 && time.Now().Add(time.Since(begin)/time.Duration(round)).After(until) {
			break
		}
		for i := range b.variants {
			i = (i + round) % len(b.variants)
			v := b.variants[i]
			all[i] = append(all[i], v.turn(crowds[v.place], b.turn))
			if faults := all[i][round].faults; len(faults) > 0 {
				return all, fmt.Errorf("%s, %s, round %d: %d of %d callers stopped, the first because: %w",
					b.title, v.name, round+1, len(faults), b.callers, faults[0])
			}
		}
	}
	for _, v := range b.variants {
		for _, c := range crowds[v.place] {
			if err := c.end(); err != nil {
				return all, fmt.Errorf("%s, %s: %w", b.title, v.name, err)
			}
		}
		delete(crowds, v.place)
	}
	return all, nil
}

// gather opens sessions, one after the other, and spreads them over the replicas.
func gather(open func(door) (client, error), at *place, n int) ([]client, error) {
	crowd, replicas := make([]client, 0, n), at.replicas()
	for i := range n {
		c, err := open(replicas[i%len(replicas)].door)
		if err != nil {
			for _, c := range crowd {
				c.hangUp()
			}
			return nil, fmt.Errorf("session %d of %d: %w", len(crowd)+1, n, err)
		}
		crowd = append(crowd, c)
	}
	return crowd, nil
}

// turn lets all callers call, one call after the other each, for a while; each at least once.
func (v *variant) turn(crowd []client, lasts time.Duration) turn {
	took, faults := make([][]time.Duration, len(crowd)), make([]error, len(crowd))
	var ready, done sync.WaitGroup
	gate := make(chan time.Time)
	for i, c := range crowd {
		ready.Add(1)
		done.Go(func() {
			mine := make([]time.Duration, 0, 1024)
			ready.Done()
			for end := <-gate; faults[i] == nil && (len(mine) == 0 || time.Now().Before(end)); {
				var lasted time.Duration
				if lasted, faults[i] = c.call(v.kind); faults[i] == nil {
					mine = append(mine, lasted)
				}
			}
			took[i] = mine
		})
	}
	ready.Wait()
	before, database := v.place.cpu()
	own, begin := usageOf(os.Getpid()).cpu, time.Now()
	end := begin.Add(lasts)
	for range crowd {
		gate <- end
	}
	done.Wait()
	t := turn{whole: time.Since(begin), took: slices.Concat(took...)}
	gateways, after := v.place.cpu()
	t.cpu, t.database, t.own = gateways-before, after-database, usageOf(os.Getpid()).cpu-own
	for _, fault := range faults {
		if fault != nil {
			t.faults = append(t.faults, fault)
		}
	}
	return t
}
