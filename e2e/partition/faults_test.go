//go:build linux

package partition_test

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// lease is that of the gateways.
const lease = 3 * time.Second

// A nemesis breaks things, one after the other, and repairs each after a while.
type nemesis struct {
	*bed
	r     *rand.Rand
	count map[string]int
}

// A trouble is a kind of fault. It is over when strike returns, and what it broke works again, or will.
type trouble struct {
	name   string
	weight int
	strike func()
}

// between is a random duration.
func (n *nemesis) between(from, to time.Duration) time.Duration {
	return from + time.Duration(n.r.Int64N(int64(to-from)))
}

func (n *nemesis) one() *gateway { return n.gateways[n.r.IntN(len(n.gateways))] }

// strikes lets one fault happen. The first ones are one of each kind.
func (n *nemesis) strikes(number int) {
	all := append(n.processes(), n.databases()...)
	what := all[number%len(all)]
	if number >= len(all) {
		sum := 0
		for _, f := range all {
			sum += f.weight
		}
		at := n.r.IntN(sum)
		for _, f := range all {
			if at -= f.weight; at < 0 {
				what = f
				break
			}
		}
	}
	n.count[what.name]++
	n.t.Logf("%8.3f s: %s (%d operations)", seconds(n.history.now()), what.name, n.history.operations.Load())
	what.strike()
	for _, g := range n.gateways {
		g.supervise()
	}
	time.Sleep(n.between(100*time.Millisecond, time.Second))
}

// processes are the faults of gateways.
func (n *nemesis) processes() []trouble {
	return []trouble{
		{"gateway stopped longer than a lease", 2, func() {
			g := n.one()
			g.signal(syscall.SIGSTOP)
			time.Sleep(n.between(lease*5/4, lease*2))
			g.signal(syscall.SIGCONT)
		}},
		{"gateway stopped while another takes its runs", 3, func() {
			i := n.r.IntN(len(n.gateways))
			g, other := n.gateways[i], n.gateways[(i+1)%len(n.gateways)]
			g.signal(syscall.SIGSTOP)
			time.Sleep(lease * 5 / 4)
			other.end(syscall.SIGKILL)
			other.start() // it ends runs whose owner's lease has run out
			other.listens()
			g.signal(syscall.SIGCONT)
		}},
		{"gateway stopped briefly", 1, func() {
			g := n.one()
			g.signal(syscall.SIGSTOP)
			time.Sleep(n.between(lease/10, lease/2))
			g.signal(syscall.SIGCONT)
		}},
		{"gateway killed", 3, func() {
			g := n.one()
			g.end(syscall.SIGKILL)
			time.Sleep(n.between(0, lease/2))
			g.start()
		}},
		{"all gateways killed", 1, func() {
			for _, g := range n.gateways {
				g.end(syscall.SIGKILL)
			}
			for _, g := range n.gateways {
				g.start()
			}
			for _, g := range n.gateways {
				g.listens()
			}
		}},
		{"gateway ended", 1, func() {
			g := n.one()
			g.end(syscall.SIGTERM)
			g.start()
		}},
	}
}
