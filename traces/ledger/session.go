package ledger

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Lifetimes of console sessions.
const (
	LinkTime    = time.Minute    // an unused sign-in link
	SessionIdle = time.Hour      // an unused session
	SessionEnd  = 12 * time.Hour // any session
	// How old the recorded last use may be: recording each use would mean a write for every page.
	sessionResave = time.Minute
)

// ErrSession means that there is no such session or link, or that it has ended. It also means that
// its token is no longer valid, or that its person is blocked.
var ErrSession = errors.New("the session has ended")

// kindSession is the kind of the digest of a session's secret.
const kindSession = "session"

// SessionDigest returns the digest under which a session is stored.
func SessionDigest(secret string) canonical.Digest { return canonical.Sum(kindSession, []byte(secret)) }

// NewLink returns the secret of a link. With the link, the caller can sign in at the console once,
// within [LinkTime].
func (l *Ledger) NewLink(ctx context.Context, by Caller) (secret string, err error) {
	err = l.commit(ctx, func(b *batch) (err error) {
		if by.isSubject() {
			return &Refusal{Code: RefusedRole, Message: "a link is for the owner of a token of the ledger; others sign in at the console with their identity provider"}
		}
		if err := by.recheckAction(b, b.now, ActRead); err != nil {
			return err
		}
		secret, err = b.newSession(Session{Kind: SessionLink, Token: by.TokenID}, LinkTime)
		return err
	})
	return secret, err
}

// Link returns the caller who can sign in with a link. It does not use the link up.
func (l *Ledger) Link(ctx context.Context, secret string) (who Caller, err error) {
	err = l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		_, who, err = liveSession(r, SessionDigest(secret), SessionLink, now)
		return err
	})
	return who, err
}

// SignInByLink uses a link up and begins a session. It returns the secret of the session.
func (l *Ledger) SignInByLink(ctx context.Context, link string) (secret string, err error) {
	err = l.commit(ctx, func(b *batch) error {
		s, _, err := liveSession(b, SessionDigest(link), SessionLink, b.now)
		if err != nil {
			return err
		}
		if err := b.DropSession(s.Secret); err != nil {
			return err
		}
		s.Kind = SessionOpen
		secret, err = b.newSession(s, SessionEnd)
		return err
	})
	return secret, err
}

// SignIn begins a session of the owner of a token. The token's role must allow one of some actions.
func (l *Ledger) SignIn(ctx context.Context, token string, may ...Action) (secret string, err error) {
	caller, err := l.Authenticate(ctx, token)
	if err != nil {
		return "", err
	}
	err = l.commit(ctx, func(b *batch) (err error) {
		if err := caller.recheckAction(b, b.now, caller.firstAllowed(may)); err != nil {
			return err
		}
		secret, err = b.newSession(Session{Kind: SessionOpen, Token: caller.TokenID}, SessionEnd)
		return err
	})
	return secret, err
}

// SignInAs begins a session of a person whom an identity provider has authenticated. The person's
// roles must allow one of some actions. authTime is when the provider asked for the person's credentials;
// zero if the provider does not say. The session keeps the person's present groups until it ends.
func (l *Ledger) SignInAs(ctx context.Context, by Caller, authTime time.Time, may ...Action) (secret string, err error) {
	s := Session{Kind: SessionOpen, Name: by.Name}
	if s.Identity, err = canonical.Sorted(by.Identity); err != nil {
		return "", err
	}
	err = l.commit(ctx, func(b *batch) (err error) {
		if !by.isSubject() || by.Session != "" {
			return refusedToken("a session of a person begins with a token of an identity provider")
		}
		if err := by.recheckAction(b, b.now, by.firstAllowed(may)); err != nil {
			return err
		}
		if s.AuthTime = ""; !authTime.IsZero() {
			s.AuthTime = min(authTime.UTC().Format(timeForm), b.now) // the provider's clock may be ahead
		}
		secret, err = b.newSession(s, SessionEnd)
		return err
	})
	return secret, err
}

// Session returns the caller who is signed in. The roles of a person of an identity provider are
// missing: the configuration gives them. used reports that the person did something; a page that
// refreshes itself passes false.
func (l *Ledger) Session(ctx context.Context, secret string, used bool) (who Caller, err error) {
	digest, resave := SessionDigest(secret), false
	err = l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		s, c, err := liveSession(r, digest, SessionOpen, now)
		if err != nil {
			return err
		}
		who, resave = c, now >= addToTime(s.Used, sessionResave)
		return nil
	})
	if err != nil || !used || !resave {
		return who, err
	}
	return who, l.commit(ctx, func(b *batch) error {
		s, _, err := liveSession(b, digest, SessionOpen, b.now)
		if err != nil {
			return err
		}
		s.Used, b.wrote = b.now, true
		return b.PutSession(s)
	})
}

// SignOut ends a session.
func (l *Ledger) SignOut(ctx context.Context, secret string) error {
	return l.commit(ctx, func(b *batch) error { return b.DropSession(SessionDigest(secret)) })
}

// readTime returns the ledger's time for a reader.
func (l *Ledger) readTime(r Reader) (string, error) {
	end, err := r.End()
	if err != nil {
		return "", err
	}
	return l.timeAfter(end.At)
}

// newSession stores a session, which begins now, and returns its secret. It removes sessions that
// have ended.
func (b *batch) newSession(session Session, lifetime time.Duration) (secret string, err error) {
	b.wrote = true
	var ended []canonical.Digest
	for s, err := range b.Sessions() {
		if err != nil {
			return "", err
		}
		if s.hasEnded(b.now) {
			ended = append(ended, s.Secret)
		}
	}
	for _, digest := range ended {
		if err := b.DropSession(digest); err != nil {
			return "", err
		}
	}
	random := make([]byte, secretBytes)
	rand.Read(random) // never returns an error: a failure ends the process
	secret = base64.RawURLEncoding.EncodeToString(random)
	session.Secret, session.Created, session.Used, session.Expires = SessionDigest(secret), b.now, b.now,
		addToTime(b.now, lifetime)
	return secret, b.PutSession(session)
}

// liveSession returns a session that has not ended, and its owner: the owner of its token, or a
// person who is not blocked. The error is [ErrSession] if there is none.
func liveSession(r Reader, secret canonical.Digest, kind, now string) (s Session, who Caller, err error) {
	s, err = r.Session(secret)
	switch {
	case errors.Is(err, ErrNotFound):
		return s, who, ErrSession
	case err != nil:
		return s, who, err
	case s.Kind != kind || s.hasEnded(now):
		return s, who, ErrSession
	case s.Token == "":
		who, err = s.readPerson(r)
		return s, who, err
	}

	t, err := r.Token(s.Token)
	switch {
	case errors.Is(err, ErrNotFound):
		return s, who, ErrSession
	case err != nil:
		return s, who, err
	case t.invalidReason(now) != "":
		return s, who, ErrSession
	}
	return s, Caller{TokenID: t.ID, Name: t.Name, Roles: []string{t.Role}, Session: secret}, nil
}

// readPerson returns the person of an identity provider to whom the session belongs.
func (s *Session) readPerson(r Reader) (Caller, error) {
	who := Caller{Name: s.Name, Session: s.Secret, Identity: new(policy.Identity)}
	if err := canonical.Unmarshal(s.Identity, who.Identity); err != nil {
		return Caller{}, fmt.Errorf("session %s: %w: %w", s.Secret, ErrMalformed, err)
	}
	_, blocked, err := blockOf(r, who.Name)
	switch {
	case err != nil:
		return Caller{}, err
	case blocked || !who.isSubject():
		return Caller{}, ErrSession
	}
	return who, nil
}

// hasEnded reports whether a session or link has ended at a time.
func (s *Session) hasEnded(now string) bool {
	return now >= s.Expires || now >= addToTime(s.Used, SessionIdle)
}

// addToTime returns a time of the ledger plus a duration. If the text is not a time, it returns an
// empty text, which sorts before every time.
func addToTime(at string, d time.Duration) string {
	t, err := time.Parse(timeForm, at)
	if err != nil {
		return ""
	}
	return t.Add(d).Format(timeForm)
}
