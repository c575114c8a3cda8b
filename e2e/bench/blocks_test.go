package bench

import (
	"regexp"
	"slices"
	"testing"
)

// A world is all that is measured. A pgfsm is started when a block needs it.
type world struct {
	t        *testing.T
	upstream *process
	direct   *place
	bare     *place
	places   map[setup]*place
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, upstream: self(t, upstreamRole), places: map[setup]*place{}}
	w.direct = w.upstream.place("/mcp")
	w.bare = self(t, bareRole, proxyTo+"="+w.upstream.host).place("/mcp")
	return w
}

func (p *process) place(path string) *place {
	return &place{door: door{host: p.host, path: path}, process: p}
}

// at is where a pgfsm of a setup is, which is always the same: with several servers the place where their tools are joined.
func (w *world) at(s setup) *place {
	if w.places[s] == nil {
		w.places[s] = &place{missing: *program == "", start: func() place {
			g := s.serve(w.t, w.upstream)
			if s.servers > 1 {
				return g.joined()
			}
			return g.single()
		}}
	}
	return w.places[s]
}

// Setups of the headline. The joined servers are a process of their own, so that what it needs is theirs.
var (
	volatile  = setup{servers: 1}
	byDefault = setup{servers: 1, record: byItself}
	durable   = setup{servers: 1, record: inLedger}
	joined    = setup{servers: 4, record: inLedger}
)

const bareProxy = "bare proxy"

// without are the variants that everything is compared with.
func (w *world) without(k kind) []variant {
	return []variant{{"direct", w.direct, k, nil}, {bareProxy, w.bare, k, nil}}
}

// headline are the calls that the bars are about: 32 bytes, 100 policies, every gate on. The bars apply to clients of the
// Go SDK. Callers that need nearly no time themselves show the cost of a gateway more sharply.
func (w *world) headline() (blocks []block) {
	for _, b := range []block{
		{title: "Calls of 32 B", callers: 1, open: openPlain}, {title: "Calls of 32 B", callers: 32, open: openPlain},
		{title: "Calls of 32 B", callers: 256, open: openPlain},
		{title: "Calls of 32 B, clients of the Go SDK", callers: 1, open: openSDK},
		{title: "Calls of 32 B, clients of the Go SDK", callers: 32, open: openSDK},
	} {
		b.variants = append(w.without(echo),
			variant{"pgfsm, record: none", w.at(volatile), echo, []bar{{1, ratioBar, 1.1, bareProxy}, {32, shareBar, 0.95, bareProxy}}},
			variant{"pgfsm, default", w.at(byDefault), echo, nil},
			variant{"pgfsm, ledger", w.at(durable), echo, []bar{{1, ratioBar, 2.1, bareProxy}, {32, shareBar, 0.72, bareProxy}}},
			variant{"pgfsm, ledger, denied", w.at(durable), refused, nil},
			variant{"pgfsm, ledger, 4 servers joined", w.at(joined), echo, nil},
		)
		blocks = append(blocks, b)
	}
	large := blob(64 << 10)
	return append(blocks, block{title: "Answers of 64 KiB, clients of the Go SDK", callers: 1, open: openSDK, variants: append(w.without(large),
		variant{"pgfsm, record: none", w.at(volatile), large, []bar{{1, ratioBar, 1.15, bareProxy}}},
		variant{"pgfsm, ledger", w.at(durable), large, nil},
	)})
}

// choose keeps the first variant and, of the others, those that are there to be measured and that a pattern names.
func (b *block) choose(pattern *regexp.Regexp) {
	b.variants = slices.DeleteFunc(b.variants, func(v variant) bool {
		return v.place.missing || !pattern.MatchString(v.name) && v.name != b.variants[0].name
	})
}
