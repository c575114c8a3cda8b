package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"pgfsm/internal/web"
)

// timeouts bound how long the gateway waits for clients, and set the interval of keep-alives on
// silent streams.
type timeouts struct {
	header     time.Duration // reading the header of a request
	body       time.Duration // reading the body of a request
	write      time.Duration // one write
	idle       time.Duration // idle connection between two requests
	keepAlive  time.Duration // interval of keep-alives on a stream
	firstEvent time.Duration // wait before a request of a resumable revision is answered by a stream
	shutdown   time.Duration // requests under way when the gateway stops
}

var defaultTimeouts = timeouts{
	header:     5 * time.Second,
	body:       15 * time.Second,
	write:      30 * time.Second,
	idle:       time.Minute,
	keepAlive:  15 * time.Second,
	firstEvent: 50 * time.Millisecond,
	shutdown:   30 * time.Second,
}

// maxHeaderBytes bounds the header of a request.
const maxHeaderBytes = 32 << 10

// Drain accepts no more requests, ends the streams without a request under way, and waits for the
// requests until ctx is done. Then it ends all sessions. An error means that requests were cut off.
func (f *Front) Drain(ctx context.Context) error {
	var err error
	select {
	case <-f.table.Requests.Stop():
	case <-ctx.Done():
		err = fmt.Errorf("%d requests were cut off: %w", f.table.Requests.Count(), context.Cause(ctx))
	}
	f.table.EndAll()
	return err
}

// Serve answers HTTP requests until ctx is done. Then it calls drain, which must call
// [Front.Drain], and closes the listener.
func (f *Front) Serve(ctx context.Context, on net.Listener, drain func(context.Context) error) error {
	server := &http.Server{
		// Streams live long, so the server has no ReadTimeout and no WriteTimeout: each read and
		// each write has its own deadline.
		Handler:           f,
		ReadHeaderTimeout: f.timeouts.header,
		IdleTimeout:       f.timeouts.idle,
		MaxHeaderBytes:    web.MaxHeaderBytes(maxHeaderBytes),
	}
	return web.Serve(ctx, on, server, f.table.Limits.Connections, func() error {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeouts.shutdown)
		defer cancel()
		err := drain(within)
		// Time for the last answers.
		closeCtx, end := context.WithTimeout(context.WithoutCancel(ctx), f.timeouts.header)
		defer end()
		if server.Shutdown(closeCtx) != nil {
			err = errors.Join(err, server.Close())
		}
		return err
	})
}
