package upstream

import (
	"context"
	"time"
)

// streamWait bounds how long the first call waits for the standalone stream. Some servers answer
// the GET only with their first message.
const streamWait = 2 * time.Second

// awaitStream waits for the standalone stream before a call during which the server may send
// requests to the peer. A request that the server sends before the stream is open would be lost,
// and the call would wait for its answer.
func (l *Link) awaitStream(ctx context.Context) {
	if !l.asksPeer || l.modern || !l.streamOpen.Load() {
		return
	}
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-l.streamAnswered:
	case <-timer.C:
		l.markStreamAnswered() // the next call does not wait
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
}
