package web

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
)

// Serve serves a server's handler, wrapped by [Handler] and within a number of connections, until
// ctx is done. Then it calls stop, which ends the requests in progress and shuts the server down. It
// closes the listener.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, connections int, stop func() error) error {
	server.Handler = Handler(server.Handler)
	server.DisableGeneralOptionsHandler = true
	server.ErrorLog = log.New(io.Discard, "", 0) // it would log text from strangers

	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() { stopped <- stop() })
	err := server.Serve(Shed(server, listener, connections))
	if cancel() { // the server failed before ctx was done
		return errors.Join(err, server.Close())
	}
	return <-stopped
}
