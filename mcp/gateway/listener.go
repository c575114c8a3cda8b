package gateway

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"pgfsm/web"
)

// A pace says how long clients may take over what, and when they hear something if there is nothing to say.
type pace struct {
	header time.Duration // for the header of a request
	body   time.Duration // for its body
	write  time.Duration // for taking what is written at once; one who does not read is cut off
	idle   time.Duration // between two requests of a connection
	beat   time.Duration // between two signs of life on a stream
	prime  time.Duration // after which a request of a resumable revision is answered by a stream
	grace  time.Duration // for what is under way when the gateway is stopped
}

var usualPace = pace{
	header: 5 * time.Second, body: 15 * time.Second, write: 30 * time.Second, idle: time.Minute,
	beat: 15 * time.Second, prime: 50 * time.Millisecond, grace: 30 * time.Second,
}

// maxHeaderBytes bounds the header of a request.
const maxHeaderBytes = 32 << 10

// Serve answers clients until ctx is done, and then drains the gateway; see [Gateway.Drain]. It closes the listener.
func (g *Gateway) Serve(ctx context.Context, on net.Listener) error {
	server := &http.Server{
		// Streams may live long: what reads and writes for too long is cut off where it is read and written.
		Handler: web.Handler(g.Handler()), ReadHeaderTimeout: g.pace.header, IdleTimeout: g.pace.idle,
		MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
		ErrorLog: log.New(io.Discard, "", 0), // it would repeat what strangers send
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.pace.grace)
		defer cancel()
		err := g.Drain(within)
		// The answers of requests that were drained are on their way.
		last, end := context.WithTimeout(context.WithoutCancel(ctx), g.pace.header)
		defer end()
		if server.Shutdown(last) != nil {
			err = errors.Join(err, server.Close())
		}
		stopped <- err
	})
	err := server.Serve(web.Shed(server, on, g.options.Limits.Connections))
	if stop() { // it broke by itself
		return errors.Join(err, server.Close())
	}
	return <-stopped
}
