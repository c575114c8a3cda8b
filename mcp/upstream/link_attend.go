package upstream

import (
	"context"
	"sync"
	"time"
)

// earsWithin is how long the first call waits at most for the stream of news. A server may open it only with the first thing that it says.
const earsWithin = 2 * time.Second

// ears are opened once the server has answered the request for the stream of news, whatever it has answered.
type ears struct {
	once   sync.Once
	opened chan struct{}
}

func (e *ears) open() { e.once.Do(func() { close(e.opened) }) }

// attend waits until a server that may ask something in the middle of a call is listened to: what it asks on a stream that is not there
// yet, nobody ever hears, and the call waits for the answer.
func (l *Link) attend(ctx context.Context) {
	if !l.asks || l.modern || !l.news.Load() {
		return
	}
	select {
	case <-l.ears.opened:
		return
	default:
	}
	timer := time.NewTimer(earsWithin)
	defer timer.Stop()
	select {
	case <-l.ears.opened:
	case <-timer.C:
		l.ears.open() // the next call waits no more
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
}
