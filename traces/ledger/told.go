package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// Bounds of what hooks tell. Those of rows are for each actor, so that nobody makes a gateway forget what others told.
const (
	maxTold      = 1 << 10        // rows of one kind; more replace those that expire first
	maxEqual     = 16             // announcements of equal calls; more replace the oldest, of the same session if there is one
	maxPrompts   = 256            // recorded prompts of a session
	sessionKept  = 24 * time.Hour // how long a session's last prompt is known
	announcedFor = time.Minute    // how long an announcement waits for its call
)

// Kinds of [Told].
const (
	toldSession = "session"
	toldCall    = "call"
)

// A Told is what an actor's hook told, for all gateways of a ledger: work to be done, not a part of the record.
type Told struct {
	Kind    string
	Actor   string
	Name    string // the key of a session, or the digest of an announced call
	Value   jsontext.Value
	Expires string
}

// A toldPrompts is the value of a session.
type toldPrompts struct {
	Last    int64 `json:"last"`    // index of the entry with the last prompt
	Prompts int   `json:"prompts"` // how many were recorded
}

// An announcement is an element of the value of an announced call.
type announcement struct {
	Session states.Session `json:"session"`
	Until   string         `json:"until"`
}

// readTold reads the value of what an actor told. It reports false if there is none, or if it has expired.
func readTold(r Reader, kind, actor, name, now string, value any) (found bool, err error) {
	t, err := r.ReadTold(kind, actor, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case now >= t.Expires:
		return false, nil
	}
	if err := canonical.Unmarshal(t.Value, value); err != nil {
		return false, fmt.Errorf("told %s %s of %s: %w: %w", kind, name, actor, ErrMalformed, err)
	}
	return true, nil
}

// putTold replaces the value of what an actor told, and drops what has expired or is too much.
func (b *batch) putTold(kind, actor, name string, value any, expires string) error {
	text, err := canonical.Sorted(value)
	if err != nil {
		return err
	}
	b.wrote = true
	if err := b.PutTold(Told{kind, actor, name, text, expires}); err != nil {
		return err
	}
	return b.LimitTold(kind, actor, b.now, maxTold)
}

// A Prompt is a prompt of a client's session, as its hook tells it.
type Prompt struct {
	ID      string // the client's id of the prompt; empty: it has none
	Session string // as [states.Session.Key] writes it
	Source  string // who wrote the prompt, as the client says
	Text    string
	Cut     bool // the text was longer
}

// CapturePrompt records a prompt and returns the index of its entry; 0 if the session has too many already.
func (l *Ledger) CapturePrompt(ctx context.Context, by Caller, prompt Prompt) (index int64, err error) {
	err = l.commit(ctx, func(b *batch) error {
		if err := by.recheckCalls(b, ActTell); err != nil {
			return err
		}
		var told toldPrompts
		if _, err := readTold(b, toldSession, by.Name, prompt.Session, b.now, &told); err != nil || told.Prompts >= maxPrompts {
			return err
		}
		if err := b.addEvent(nil, "", by.Name, &promptCaptured{
			Cut: prompt.Cut, Prompt: prompt.ID, Session: prompt.Session, Source: prompt.Source, Text: prompt.Text, Token: by.TokenID,
		}); err != nil {
			return err
		}
		index = b.entry.Index
		return b.putTold(toldSession, by.Name, prompt.Session, &toldPrompts{index, told.Prompts + 1}, addToTime(b.now, sessionKept))
	})
	return index, err
}

// An AnnouncedCall is an MCP call that a hook announced before its client made it.
type AnnouncedCall struct {
	Server, Tool string
	Arguments    canonical.Digest
}

// name is the name of the call's [Told].
func (c *AnnouncedCall) name() string {
	return string(canonical.Sum(toldCall, fmt.Appendf(nil, "%q %q %s", c.Server, c.Tool, c.Arguments)))
}

// Announce notes that an actor's client is about to make an MCP call in a session.
func (l *Ledger) Announce(ctx context.Context, by Caller, call AnnouncedCall, session states.Session) error {
	return l.commit(ctx, func(b *batch) error {
		if err := by.recheckCalls(b, ActTell); err != nil {
			return err
		}
		waiting, err := readAnnounced(b, by.Name, call, b.now)
		if err != nil {
			return err
		}
		if len(waiting) == maxEqual { // several sessions stay several
			oldest := max(0, slices.IndexFunc(waiting, func(a announcement) bool { return a.Session.Key() == session.Key() }))
			waiting = slices.Delete(waiting, oldest, oldest+1)
		}
		until := addToTime(b.now, announcedFor)
		waiting = append(waiting, announcement{session, until})
		var none []announcement // that calls are announced is noted once an hour
		noted, err := readTold(b, toldCall, by.Name, "", addToTime(b.now, sessionKept-time.Hour), &none)
		if err == nil && !noted {
			err = b.putTold(toldCall, by.Name, "", []announcement{}, addToTime(b.now, sessionKept))
		}
		if err != nil {
			return err
		}
		return b.putTold(toldCall, by.Name, call.name(), waiting, until)
	})
}

// readAnnounced returns the announcements of equal calls that still wait, the oldest first.
func readAnnounced(r Reader, actor string, call AnnouncedCall, now string) (waiting []announcement, err error) {
	_, err = readTold(r, toldCall, actor, call.name(), now, &waiting)
	return slices.DeleteFunc(waiting, func(a announcement) bool { return now >= a.Until }), err
}

// Join returns the session in which an actor's MCP call was announced, and uses the announcement up. It returns nil
// if no hook announced the call, or hooks announced equal calls in several sessions; announces says that a hook has
// announced calls of the actor within a day, and so knows sessions. Without an announcement it only reads.
func (l *Ledger) Join(ctx context.Context, actor string, call AnnouncedCall) (session *states.Session, announces bool, err error) {
	var waiting []announcement
	err = l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err == nil {
			waiting, err = readAnnounced(r, actor, call, now)
		}
		if err == nil {
			var none []announcement
			announces, err = readTold(r, toldCall, actor, "", now, &none)
		}
		return err
	})
	if err != nil || len(waiting) == 0 {
		return nil, announces, err
	}
	err = l.commit(ctx, func(b *batch) error {
		session = nil
		waiting, err := readAnnounced(b, actor, call, b.now)
		if err != nil || len(waiting) == 0 { // another gateway was first
			return err
		}
		first := waiting[0].Session
		unlike := func(a announcement) bool { return a.Session.Key() != first.Key() }
		waiting = waiting[1:]
		several := slices.ContainsFunc(waiting, unlike)
		if !several {
			session = &first
		}
		if several || len(waiting) == 0 {
			b.wrote = true
			return b.DropTold(toldCall, actor, call.name())
		}
		return b.putTold(toldCall, actor, call.name(), waiting, waiting[len(waiting)-1].Until)
	})
	if err != nil {
		return nil, false, err
	}
	return session, announces, nil
}
