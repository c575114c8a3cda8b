//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"pgfsm/internal/test/check"
)

// A Proxy stands between one client and a server. It relays everything unless a test adds a fault. Only one goroutine may call its
// methods at a time.
type Proxy struct {
	t      testing.TB
	proxy  *toxiproxy.Proxy
	toxics []string // active faults
}

// NewProxy makes a proxy before the server at an address. It ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	port, err := freePort()
	check.NoError(t, err)
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p := &Proxy{t: t, proxy: toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), listen, listen, server)}
	p.Restore()
	t.Cleanup(p.proxy.Stop)
	return p
}

// Address returns the address for clients.
func (p *Proxy) Address() string { return p.proxy.Listen }

// Cut closes all connections and refuses new ones, until [Proxy.Restore].
func (p *Proxy) Cut() { p.proxy.Stop() }

// Restore ends every fault. Connections that lost data are closed.
func (p *Proxy) Restore() {
	p.t.Helper()
	for _, name := range p.toxics {
		check.NoError(p.t, p.proxy.Toxics.RemoveToxic(context.Background(), name))
	}
	p.toxics = nil
	p.proxy.Lock()
	enabled := p.proxy.Enabled
	p.proxy.Unlock()
	if !enabled {
		check.NoError(p.t, p.proxy.Start())
	}
}

// Redirect leads new connections to another server and closes the existing ones.
func (p *Proxy) Redirect(server string) {
	p.t.Helper()
	p.proxy.Stop()
	p.proxy.Upstream = server
	p.Restore()
}

// Delay delays the traffic in both directions.
func (p *Proxy) Delay(by time.Duration) {
	p.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		p.add("latency", stream, fmt.Sprintf(`{"latency": %d, "jitter": %d}`, by.Milliseconds(), by.Milliseconds()/2))
	}
}

// LoseRequests drops the requests of clients without closing their connections.
func (p *Proxy) LoseRequests() { p.t.Helper(); p.add("timeout", "upstream", `{"timeout": 0}`) }

// LoseAnswers drops the server's answers without closing the connections: the server acts, and its clients do not learn of it.
func (p *Proxy) LoseAnswers() { p.t.Helper(); p.add("timeout", "downstream", `{"timeout": 0}`) }

// Stall reads nothing more from the server, like a client whose process is stopped: the server's answers fill the buffers, and then the
// server waits.
func (p *Proxy) Stall() { p.t.Helper(); p.add("stall", "downstream", "{}") }

// A stall is a toxic.
type stall struct{}

func (*stall) Pipe(stub *toxics.ToxicStub)    { <-stub.Interrupt }
func (*stall) Cleanup(stub *toxics.ToxicStub) { stub.Close() }

func init() { toxics.Register("stall", new(stall)) }

func (p *Proxy) add(kind, stream, attributes string) {
	p.t.Helper()
	name := kind + stream
	toxic := fmt.Sprintf(`{"name": %q, "type": %q, "stream": %q, "attributes": %s}`, name, kind, stream, attributes)
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		p.t.Fatal(err)
	}
	p.toxics = append(p.toxics, name)
}
