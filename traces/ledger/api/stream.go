package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

// Intervals of event streams.
const (
	heartbeat   = 15 * time.Second // a proxy closes a silent connection after a minute or so
	streamWrite = 10 * time.Second // a browser that does not read loses its stream
)

// maxStreams bounds the open event streams: each keeps a connection of the admin address busy.
const maxStreams = 64

// streamEvents sends a message whenever the content of a page has changed; the page then requests
// itself again. A message has the end of the log as its id, and no other content.
func (h *Handler) streamEvents(v *visit) (answer, error) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return answer{}, newProblem(Unavailable, "too many pages are open; this one does not refresh itself")
	}

	subject, position := v.query["of"], v.query["after"]
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		position = last
	}

	after, err := strconv.ParseInt(position, 10, 64)
	if err != nil || subject != "held" && subject != "log" && !isRunID(subject) {
		return answer{}, newProblem(PathUnknown, "there are no events of this")
	}
	out := http.NewResponseController(v.w)
	if err := out.SetReadDeadline(time.Time{}); err != nil { // the stream lasts longer than a request may
		return answer{}, err
	}

	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	send := func(format string, args ...any) error {
		if err := out.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
			return err
		}
		fmt.Fprintf(v.w, format, args...)
		return out.Flush()
	}
	if send("retry: 2000\n\n") == nil {
		h.sendChanges(v, subject, after, send)
	}
	return answer{sent: true}, nil
}

// sendChanges sends messages until the browser disconnects, the session ends, or the handler is
// closed.
func (h *Handler) sendChanges(v *visit, subject string, after int64, send func(string, ...any) error) {
	lastState, sent := "", time.Now()
	ctx, stop := context.WithCancel(v.r.Context())
	defer stop()
	defer context.AfterFunc(h.closed, stop)()
	err := ledger.Poll(ctx, ledger.PollInterval, func() (bool, error) {
		end, last, state, err := h.readState(ctx, subject)
		if err != nil {
			return false, err
		}
		changed := state != lastState && (lastState != "" || last > after)
		quiet := time.Since(sent) >= heartbeat
		if changed || quiet {
			// The session may have ended, or lost its role, since the last message.
			if _, err := h.checkSession(ctx, v.secret, false); err != nil {
				return false, err
			}
			sent = time.Now()
		}
		lastState = state
		switch { // a failed write means that the browser has left
		case changed:
			return send("event: change\nid: %d\ndata:\n\n", end) != nil, nil
		case quiet:
			return send(": nothing new\n\n") != nil, nil
		}
		return false, nil
	})
	if err != nil && !errors.Is(err, ledger.ErrSession) && ctx.Err() == nil {
		h.Log("a page of the console is not refreshed any more: " + err.Error())
	}
}

// readState returns the state of a run, of the held calls or of the log. end is the end of the log.
// last is the end of the log at the last change, or a later one. The text changes with each change.
func (h *Handler) readState(ctx context.Context, subject string) (end, last int64, state string, err error) {
	end, held, err := h.poller.pollHeld(ctx, h.Ledger)
	if err != nil || subject == "held" {
		return end, end, held, err
	}
	if subject == "log" {
		return end, end, strconv.FormatInt(end, 10), nil
	}
	err = h.Ledger.ReadCommitted(ctx, func(r ledger.Reader) (err error) {
		last, err = r.LastIndexOf(subject)
		return err
	})
	return max(end, last+1), last + 1, strconv.FormatInt(last, 10), err // the end may be older than the run
}

// A changePoller is shared by all event streams, so that many streams cost the ledger as much as one.
type changePoller struct {
	mu   sync.Mutex
	at   time.Time
	end  int64
	held string
	n    int // held calls, at most pageSize+1
	err  error
}

// pollHeld returns the end of the log and a digest of the newest held calls. They are at most half
// an interval old.
func (p *changePoller) pollHeld(ctx context.Context, l *ledger.Ledger) (end int64, held string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < ledger.PollInterval/2 {
		return p.end, p.held, p.err
	}

	p.read(ctx, l)
	return p.end, p.held, p.err
}

// countHeld returns the number of held calls, at most pageSize+1, for a page that shows the log up to
// an end.
func (p *changePoller) countHeld(ctx context.Context, l *ledger.Ledger, end int64) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == "" || p.end < end {
		p.read(ctx, l)
	}
	return p.n, p.err
}

func (p *changePoller) read(ctx context.Context, l *ledger.Ledger) {
	p.err = l.View(context.WithoutCancel(ctx), func(r ledger.Reader) error {
		end, err := r.End()
		// Without new entries, the same calls are held.
		if err != nil || end.Size == p.end && p.held != "" {
			return err
		}
		var calls []byte
		n := 0
		f := ledger.Filter{Statuses: []ledger.Status{ledger.Pending}, Newest: true, Limit: pageSize + 1}
		for q, err := range r.Runs(f) {
			if err != nil {
				return err
			}
			calls = fmt.Appendf(calls, "%s %d\n", q.RunID, q.Entry)
			n++
		}
		p.end, p.n, p.held = end.Size, n, string(canonical.Sum("held calls", calls))
		return nil
	})
	p.at = time.Now()
}
