// Package loopback keeps services on this machine: it says which names are this machine's own, and listens on them only.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Host reports whether a host can only be this machine: localhost, or a loopback address without a zone and without a port.
// The name localhost may be anything; whoever connects or listens looks at the connection again, with [Addr].
func Host(name string) bool {
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback() && ip.Zone() == ""
}

// Addr reports whether an end of a connection is on this machine.
func Addr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// ErrElsewhere means that an address can be reached from other machines.
var ErrElsewhere = errors.New("it can be reached from other machines, and tokens would cross the network unencrypted; listen on 127.0.0.1 " +
	"and put a reverse proxy with TLS before it (with the name that it is reached by in serve.hosts, or behind --host of approvals serve)")

// Listen opens an address of this machine's own: an IP address or localhost, and a port. The error is [ErrElsewhere]
// where others could reach it.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not HOST:PORT, such as 127.0.0.1:9000", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return nil, fmt.Errorf("the address %q has no port from 0 to 65535", address)
	}
	if !Host(host) {
		return nil, fmt.Errorf("the address %q is refused: %w", address, ErrElsewhere)
	}
	on, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if !Addr(on.Addr()) {
		return nil, errors.Join(fmt.Errorf("the address %q is refused: %w", address, ErrElsewhere), on.Close())
	}
	return on, nil
}

// Hosts are the values of the Host header under which callers on this machine reach a listener.
func Hosts(on net.Listener) []string {
	_, port, _ := net.SplitHostPort(on.Addr().String())
	names := []string{on.Addr().String(), "127.0.0.1:" + port, "[::1]:" + port, "localhost:" + port}
	if port == "80" { // is left out
		names = append(names, "127.0.0.1", "[::1]", "localhost")
	}
	return names
}
