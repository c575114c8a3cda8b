package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// Bounds of a subject in bytes. OpenID Connect Core bounds sub at 255.
const (
	maxIssuer  = 1024
	maxSubject = 255
)

// BlockIdentity blocks a subject of an identity provider, and ends the subject's connections. The
// subject can no longer call, vote or sign in. Waiting calls that the subject requested or approved are not made. The rules of
// [Ledger.CreateToken] say who may block. The error is [ErrBlock] if the name is not a valid
// subject, or if the subject is already blocked.
func (l *Ledger) BlockIdentity(ctx context.Context, by Caller, issuer, subject string) error {
	return l.changeBlock(ctx, by, &identityBlocked{Issuer: issuer, Subject: subject})
}

// UnblockIdentity ends a block. Votes and requests from before the block count again. The rules of
// [Ledger.CreateToken] say who may unblock. The error is [ErrBlock] if the subject is not blocked.
func (l *Ledger) UnblockIdentity(ctx context.Context, by Caller, issuer, subject string) error {
	return l.changeBlock(ctx, by, &identityUnblocked{Issuer: issuer, Subject: subject})
}

// changeBlock records an event about a block, and updates the row of the block.
func (l *Ledger) changeBlock(ctx context.Context, by Caller, p payload) error {
	issuer, subject, ends := subjectOf(p)
	if err := checkSubject(issuer, subject); err != nil {
		return refusedBlock("%s", err)
	}

	name := policy.SubjectName(issuer, subject)
	return l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		old, blocked, err := blockOf(b, name)
		switch {
		case err != nil:
			return err
		case blocked && !ends:
			return refusedBlock("%s of %s is blocked already, since %s by %s", subject, issuer, old.Since,
				visible.Text(old.By))
		case !blocked && ends:
			return refusedBlock("%s of %s is not blocked; pgfsm identity list shows who is", subject, issuer)
		}
		if !ends {
			if err := b.endAllConnections(by.Name, EndBlocked, name); err != nil {
				return err
			}
		}
		if err := b.addEvent(nil, "", by.Name, p); err != nil {
			return err
		}
		if ends {
			return b.DropBlock(name)
		}
		return b.PutBlock(newBlock(name, &Event{Index: b.entry.Index, At: b.now, By: by.Name}))
	})
}

// newBlock returns the row of the block that an event begins.
func newBlock(name string, e *Event) Block {
	return Block{Name: name, Since: e.At, By: e.By, Entry: e.Index}
}

// checkSubject validates the name of a subject: an issuer is a URL without a fragment, and a
// subject is printable ASCII.
func checkSubject(issuer, subject string) error {
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case !policy.HasSubject(issuer+"#") || len(issuer) > maxIssuer || strings.ContainsFunc(issuer, hidden) ||
		strings.Contains(issuer, "#"):
		return fmt.Errorf("the issuer %q is not the URL of an identity provider, as the configuration has it",
			visible.Clip(issuer, MaxTokenName))
	case subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, hidden):
		return fmt.Errorf("the subject %q is not 1 to %d printable ASCII characters without spaces",
			visible.Clip(subject, MaxTokenName), maxSubject)
	}
	return nil
}

// subjectOf returns the subject that an event blocks or unblocks; empty for other events.
func subjectOf(p payload) (issuer, subject string, ends bool) {
	switch p := p.(type) {
	case *identityBlocked:
		return p.Issuer, p.Subject, false
	case *identityUnblocked:
		return p.Issuer, p.Subject, true
	}
	return "", "", false
}

// blocksAfter computes all blocks from their events. The events must be in order.
func blocksAfter(events []decodedEvent) (map[string]Block, error) {
	blocks := make(map[string]Block)
	for i := range events {
		e := &events[i].event
		issuer, subject, ends := subjectOf(events[i].payload)
		if err := checkSubject(issuer, subject); err != nil {
			return nil, faultOf(ruleBlocks, "entries", entryKey(e.Index), err.Error())
		}
		name := policy.SubjectName(issuer, subject)
		if _, blocked := blocks[name]; blocked != ends {
			return nil, faultOf(ruleBlocks, "entries", entryKey(e.Index),
				fmt.Sprintf("%s is blocked twice, or unblocked without a block", visible.Clip(name, maxIssuer)))
		}
		if ends {
			delete(blocks, name)
		} else {
			blocks[name] = newBlock(name, e)
		}
	}
	return blocks, nil
}

// compareBlocks calls found for each block whose row differs from its events.
func compareBlocks(r Reader, want map[string]Block, found func(name, what string) error) error {
	_, err := compareRows("blocks", r.Blocks(), func(b Block) string { return b.Name }, want, found)
	return err
}

// blockOf returns the first block of some actors.
func blockOf(r Reader, names ...string) (b Block, found bool, err error) {
	for _, name := range names {
		if !policy.HasSubject(name) {
			continue
		}
		b, err := r.Block(name)
		if err == nil {
			return b, true, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return Block{}, false, err
		}
	}
	return Block{}, false, nil
}

// checkNotBlocked returns [ErrBlocked] if one of some actors is blocked.
func checkNotBlocked(r Reader, names ...string) error {
	b, blocked, err := blockOf(r, names...)
	if blocked {
		return &Refusal{Code: RefusedBlocked,
			Message: fmt.Sprintf("%s is blocked here since %s; an admin can end that with pgfsm identity unblock",
				b.Name, b.Since)}
	}
	return err
}

func refusedBlock(format string, args ...any) error {
	return &Refusal{Code: RefusedBlock, Message: fmt.Sprintf(format, args...)}
}
