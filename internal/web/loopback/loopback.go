// Package loopback keeps services on this machine: it recognizes the machine's own names and
// listens only on them.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// Host reports whether a host is this machine: localhost, or a loopback address without a zone and
// a port. A resolver may map localhost elsewhere, so both clients and servers check the connection
// with [Addr].
func Host(name string) bool {
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback() && ip.Zone() == ""
}

// Addr reports whether one end of a connection is on this machine.
func Addr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// ProxyFor uses HTTPS_PROXY and NO_PROXY for https to other machines, where the proxy sees
// ciphertext. Plain http and loopback never go through a proxy. It is a Proxy of [http.Transport].
func ProxyFor(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" || Host(req.URL.Hostname()) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// ErrElsewhere means that an address can be reached from other machines.
var ErrElsewhere = errors.New("it can be reached from other machines, and tokens would cross the network unencrypted; add serve.tls to the configuration, or listen on " +
	"127.0.0.1 and put a reverse proxy with TLS before it (with the name that it is reached by in serve.hosts, or behind --host of approvals serve)")

// Listen listens on an IP address or localhost, and a port. The error is [ErrElsewhere] if other
// machines could connect.
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

// maxSocketPath is the longest path of a unix socket in bytes on every system.
const maxSocketPath = 103

// A socket is a listener that holds the lock of its path until it has removed the socket.
type socket struct {
	net.Listener
	lock *flock.Flock
}

func (s socket) Close() error { return errors.Join(s.Listener.Close(), s.lock.Close()) }

// ListenSocket listens on a unix socket that only this user can reach, in a folder where not every user could take its
// name. It replaces a socket on which
// nobody listens, and no other file. Close removes the socket. The lock, a file beside the socket, keeps
// other processes away, also from a socket that this one is about to replace or remove.
func ListenSocket(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path %q has %d bytes; a socket's has at most %d", path, len(path), maxSocketPath)
	}
	folder, err := os.Stat(filepath.Dir(path))
	switch {
	case err != nil:
		return nil, err
	case runtime.GOOS != "windows" && folder.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("every user may write to the folder of %s, so another one could listen there and read tokens; choose another folder", path)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, err
	case !locked:
		return nil, errors.Join(errUsed(path), lock.Close())
	}
	on, err := listenAlone(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return socket{on, lock}, nil
}

func errUsed(path string) error {
	return fmt.Errorf("another process listens on %s; end it, or choose another path", path)
}

// listenAlone listens on a unix socket whose lock this process holds.
func listenAlone(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		conn, err := net.Dial("unix", path)
		switch {
		case err == nil:
			return nil, errors.Join(errUsed(path), conn.Close())
		case errors.Is(err, syscall.ECONNREFUSED): // its process has ended
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	on, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, on.Close())
	}
	return on, nil
}

// Hosts are the values of the Host header with which programs on this machine reach a listener.
func Hosts(on net.Listener) []string {
	_, port, _ := net.SplitHostPort(on.Addr().String())
	names := []string{on.Addr().String(), "127.0.0.1:" + port, "[::1]:" + port, "localhost:" + port}
	if port == "80" || port == "443" { // clients leave them out
		names = append(names, "127.0.0.1", "[::1]", "localhost")
	}
	return names
}
