package ledger

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Directions of a [Passage].
const (
	ToServer = "to_server"
	ToClient = "to_client"
)

// Bounds of a [Passage], in bytes.
const (
	MaxMethod     = 128 // three times the longest method of MCP
	MaxServerName = 256
)

// Anonymous is the actor of an agent without a token. No token has this name.
const Anonymous = policy.Anonymous

// ErrPassage means that a passage is invalid, so the message must not be relayed.
var ErrPassage = errors.New("what passes cannot be recorded")

// A Passage is one message other than tools/call that the gateway relays.
type Passage struct {
	By        Caller // the owner of the session
	Server    string // the upstream server that receives or sends the message
	Direction string // ToServer or ToClient
	Method    string
	Digest    canonical.Digest // digest of the params; empty if there are none
}

// ParamsDigest returns the digest of the raw params of a relayed message; empty without params.
func ParamsDigest(raw []byte) canonical.Digest {
	if len(raw) == 0 {
		return ""
	}
	return canonical.Sum("mcp params", raw)
}

// RecordPassage records that the gateway relays a message. When Pass returns nil, that is durable;
// otherwise the gateway must not relay the message. The transaction that records it checks the
// caller. The error is [ErrToken] if the caller has no valid token for calls, [ErrRole] if the
// token was never for calls, [ErrBlocked] if the caller is blocked, and [ErrPassage] if the passage
// is invalid.
func (l *Ledger) RecordPassage(ctx context.Context, p Passage) error {
	event := &mcpPassed{
		Direction:  p.Direction,
		Method:     p.Method,
		Params:     p.Digest,
		OnBehalfOf: p.By.OnBehalfOf(),
		Server:     p.Server,
		Token:      p.By.TokenID,
	}
	if err := event.checkValues(p.By.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrPassage, err)
	}
	return l.commit(ctx, func(b *batch) error {
		if err := p.By.recheckCalls(b, ActCall); err != nil {
			return err
		}
		return b.addEvent(nil, "", p.By.Name, event)
	})
}

// recheckCalls is [Caller.recheckAction] for requests of calls. It does not check users of the operating system
// and anonymous agents: they have no token that could be revoked or expire.
func (c Caller) recheckCalls(b *batch, a Action) error {
	if c.TokenID == "" && !c.isSubject() {
		return nil
	}
	return c.recheckAction(b, b.now, a)
}

// checkValues validates a passage of an actor, without the ledger.
func (p *mcpPassed) checkValues(actor string) error {
	switch {
	case p.Direction != ToServer && p.Direction != ToClient:
		return fmt.Errorf("it goes %q, neither %s nor %s", p.Direction, ToServer, ToClient)
	case p.Method == "" || len(p.Method) > MaxMethod || !utf8.ValidString(p.Method):
		return fmt.Errorf("its method has %d bytes or is not valid UTF-8; it must have 1 to %d", len(p.Method),
			MaxMethod)
	case p.Server == "" || len(p.Server) > MaxServerName || !utf8.ValidString(p.Server):
		return fmt.Errorf("its server's name has %d bytes or is not valid UTF-8; it must have 1 to %d", len(p.Server),
			MaxServerName)
	case p.Token == "" && !policy.HasNoToken(actor):
		return errors.New("who comes without a token has no name of their own")
	case p.Token != "" && policy.HasNoToken(actor):
		return errors.New("who comes with a token has its name")
	case p.OnBehalfOf != "" && !(policy.HasSubject(p.OnBehalfOf) && policy.HasSubject(actor)):
		return errors.New("only an agent of an identity provider acts for a person, and only for one of a provider")
	}

	if p.Params != "" {
		if _, err := canonical.ParseDigest(string(p.Params)); err != nil {
			return fmt.Errorf("its params: %w", err)
		}
	}
	return nil
}

// checkPassage checks a relayed message.
func (v *verifier) checkPassage(e *Event, p *mcpPassed) error {
	if err := p.checkValues(e.By); err != nil {
		return err
	}
	if p.Token == "" {
		return v.checkNotBlocked(e.Index, e.By, p.OnBehalfOf)
	}
	return v.checkToken(p.Token, e.By, ActCall, e)
}
