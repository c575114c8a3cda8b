package web

import (
	"net/http"
	"net/netip"
	"strings"

	"pgfsm/internal/web/loopback"
)

// FromThisMachine reports whether a program on this machine sent the request, and not as a proxy.
// Other machines can reach a listener with TLS: a proxy below HTTP could forward their connections
// from this machine, and no header would show it.
//
// A proxy forwards a request if it has a header of proxies, or if it is of HTTP/1.0: nginx sends
// those, with a local Host and no further header, unless its configuration says otherwise. No
// client of MCP does.
func FromThisMachine(r *http.Request) bool {
	for name := range r.Header { // in any order
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	if !r.ProtoAtLeast(1, 1) {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && r.TLS == nil && peer.Addr().Unmap().IsLoopback() && LocalHost(r.Host)
}

// LocalHost reports whether the value of a Host header, with or without a port, names this machine.
func LocalHost(host string) bool {
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:colon]
	}
	return loopback.Host(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}
