package gateway

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// within returns what comes on a channel, soon.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not come", what)
	}
	return v
}

// serves serves a gateway until the end of the test.
func serves(t *testing.T, g *Gateway, on net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, on) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, "the end of the gateway", done); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("the gateway ended with %v", err)
		}
	})
}
