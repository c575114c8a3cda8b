package upstream

import (
	"context"
	"sync"
	"time"
)

// streamWait bounds how long the first call waits for the standalone stream. Some servers answer the GET only with their first message.
const streamWait = 2 * time.Second

// An onceOpen is set when the server has answered the request for the standalone stream, with whatever status.
type onceOpen struct {
	once sync.Once
	done chan struct{} // closed when it is set
}

func (e *onceOpen) set() { e.once.Do(func() { close(e.done) }) }

// awaitStream waits for the standalone stream before a call, if the server may ask the peer something during the call. A request that the
// server sends on a stream that is not open yet is lost, and the call would wait for its answer.
func (l *Link) awaitStream(ctx context.Context) {
	if !l.asks || l.modern || !l.stream.Load() {
		return
	}
	select {
	case <-l.opened.done:
		return
	default:
	}
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-l.opened.done:
	case <-timer.C:
		l.opened.set() // the next call waits no more
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
}
