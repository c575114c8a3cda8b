package upstream

import (
	"context"
	"time"
)

// streamWait bounds how long the first call waits for the standalone stream. Some servers answer the GET only with their first message.
const streamWait = 2 * time.Second

// awaitStream waits for the standalone stream before a call, if the server may ask the peer something during the call. A request that the
// server sends on a stream that is not open yet is lost, and the call would wait for its answer.
func (l *Link) awaitStream(ctx context.Context) {
	if !l.asks || l.modern || !l.stream.Load() {
		return
	}
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-l.opened:
	case <-timer.C:
		l.setOpened() // the next call waits no more
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
}
