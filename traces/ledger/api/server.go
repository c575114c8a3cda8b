package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"pgfsm/internal/web"
)

// limits of a server. Its clients are people and chat tools: they are few and send small messages.
type limits struct {
	header      time.Duration // for the header of a call
	read        time.Duration // for a whole call
	write       time.Duration // from the end of the header to the end of the answer
	idle        time.Duration // between two calls of a connection
	grace       time.Duration // for calls in progress when the service stops
	headerBytes int
	connections int
}

var serverLimits = limits{
	header:      5 * time.Second,
	read:        15 * time.Second,
	write:       30 * time.Second,
	idle:        time.Minute,
	grace:       10 * time.Second,
	headerBytes: 16 << 10,
	connections: 256,
}

// Serve serves until ctx is done, and then finishes the requests in progress. It closes the
// listener.
func Serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	return serveLimited(ctx, listener, h, serverLimits)
}

func serveLimited(ctx context.Context, listener net.Listener, h http.Handler, l limits) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: l.header,
		ReadTimeout:       l.read,
		WriteTimeout:      l.write,
		IdleTimeout:       l.idle,
		MaxHeaderBytes:    web.MaxHeaderBytes(l.headerBytes),
	}
	return web.Serve(ctx, listener, server, l.connections, func() error {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.grace)
		defer cancel()
		if err := server.Shutdown(grace); err != nil {
			return errors.Join(fmt.Errorf("calls that were under way were cut off: %w", err), server.Close())
		}
		return nil
	})
}

// hostName matches the value of a Host header: a host name or an address, each with or without a
// port.
var hostName = regexp.MustCompile(
	`^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// HostName reports whether a text can be the value of a Host header.
func HostName(s string) bool { return hostName.MatchString(s) }
