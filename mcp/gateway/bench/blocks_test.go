package bench

import (
	"fmt"
	"testing"
)

// A world is all that is measured. Gateways are started when a block needs them.
type world struct {
	t        *testing.T
	upstream *process
	direct   *place
	bare     *place
	floor    *place
	gateways map[setup]*gateway
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, upstream: self(t, upstreamRole), gateways: map[setup]*gateway{}}
	w.direct = w.upstream.place("/mcp")
	w.bare = self(t, bareRole, proxyTo+"="+w.upstream.host).place("/mcp")
	w.floor = self(t, floorRole).place("/mcp")
	return w
}

func (p *process) place(path string) *place { return &place{door{host: p.host, path: path}, p} }

// pgfsm reports whether there is one to measure.
func (w *world) pgfsm() bool { return *program != "" }

// ledger says whether a setup has one.
func (s setup) ledger() string {
	if s.durable {
		return "ledger"
	}
	return "no ledger"
}

func (w *world) gateway(s setup) *gateway {
	if w.gateways[s] == nil {
		w.gateways[s] = s.serve(w.t, w.upstream)
	}
	return w.gateways[s]
}

// Setups of the headline. The joined servers are a process of their own, so that what it needs is theirs.
var (
	volatile = setup{policies: 100, servers: 1}
	durable  = setup{policies: 100, servers: 1, durable: true}
	joined   = setup{policies: 100, servers: 4, durable: true}
)

// without are the variants that everything is compared with.
func (w *world) without(k kind) []variant {
	return []variant{{name: "direct", place: w.direct, kind: k}, {name: "bare proxy", place: w.bare, kind: k}}
}

// headline are the calls that the bars are about: 32 bytes, 100 policies, every gate on. The bars come from measurements with the
// Go SDK's client, which are the last two; with callers that need nothing themselves, whatever stands in between weighs more.
func (w *world) headline() (blocks []block) {
	for _, b := range []block{
		{title: "Calls of 32 B", callers: 1, open: plain}, {title: "Calls of 32 B", callers: 32, open: plain},
		{title: "Calls of 32 B", callers: 256, open: plain},
		{title: "Calls of 32 B, clients of the Go SDK", callers: 1, open: ordinary},
		{title: "Calls of 32 B, clients of the Go SDK", callers: 32, open: ordinary},
	} {
		b.variants = w.without(echo)
		if w.pgfsm() {
			at := w.gateway(durable).single()
			b = b.with(variant{"pgfsm, no ledger", w.gateway(volatile).single(), echo, []bar{{1, ratioBar, 1.6, 0}, {32, shareBar, 0.80, 0}}})
			b = b.with(variant{"pgfsm, ledger", at, echo, []bar{{1, ratioBar, 2.6, 0}, {32, shareBar, 0.68, 0}}})
			b = b.with(variant{"pgfsm, ledger, denied", at, refused, []bar{{b.callers, cheaperBar, 1, 3}}})
			b = b.with(variant{"pgfsm, ledger, 4 servers joined", w.gateway(joined).joined(), echo, []bar{{1, ratioBar, 2.7, 0}, {32, shareBar, 0.55, 0}}})
		}
		blocks = append(blocks, b.with(variant{name: "callers alone", place: w.floor, kind: echo}))
	}
	return blocks
}

func (b block) with(v variant) block {
	b.variants = append(b.variants, v)
	return b
}

// matrix is what else is asked: sizes, policies, what is decided, and an upstream that answers as JSON.
func (w *world) matrix() (blocks []block) {
	for _, n := range []int{1, 32} {
		for _, size := range []int{64 << 10, 1 << 20} {
			b := block{title: fmt.Sprintf("Answers of %d KiB, 100 policies", size>>10), callers: n, open: plain, variants: w.without(blob(size))}
			if w.pgfsm() {
				b = b.with(variant{"pgfsm, no ledger", w.gateway(volatile).single(), blob(size), nil})
				b = b.with(variant{"pgfsm, ledger", w.gateway(durable).single(), blob(size), nil})
			}
			blocks = append(blocks, b)
		}
		if !w.pgfsm() {
			continue
		}
		b := block{title: "Calls of 32 B, no ledger", callers: n, open: plain, variants: w.without(echo)}
		for _, policies := range []int{1, 100, 1000} {
			at := w.gateway(setup{policies: policies, servers: 1}).single()
			b = b.with(variant{"pgfsm, " + count(policies, "policy"), at, echo, nil})
		}
		blocks = append(blocks, b)
		b = block{title: "What is decided, 100 policies", callers: n, open: plain, variants: w.without(echo)}
		b = b.with(variant{"no ledger, allowed", w.gateway(volatile).single(), echo, nil})
		b = b.with(variant{"no ledger, denied", w.gateway(volatile).single(), refused, []bar{{n, cheaperBar, 1, 2}}})
		b = b.with(variant{"ledger, allowed", w.gateway(durable).single(), echo, nil})
		b = b.with(variant{"ledger, denied", w.gateway(durable).single(), refused, []bar{{n, cheaperBar, 1, 4}}})
		b = b.with(variant{"ledger, held", w.gateway(durable).single(), held, nil})
		blocks = append(blocks, b)
	}
	return blocks
}
