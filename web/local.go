package web

import (
	"net/http"
	"net/netip"
	"strings"

	"pgfsm/loopback"
)

// proxyHeaders say that a proxy forwards the request of another client.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// FromThisMachine reports whether a program on this machine sent the request, and not as a proxy. Other machines can
// reach a listener with TLS: a proxy below HTTP could forward their connections from this machine, and no header would show it.
func FromThisMachine(r *http.Request) bool {
	for _, name := range proxyHeaders {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && r.TLS == nil && peer.Addr().Unmap().IsLoopback() && localHost(r.Host)
}

// localHost reports whether the value of a Host header, with or without a port, names this machine.
func localHost(host string) bool {
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:at]
	}
	return loopback.Host(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}
