package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/visible"
)

// Bounds of a subject in bytes. OpenID Connect Core bounds sub at 255.
const (
	maxIssuer  = 1024
	maxSubject = 255
)

// BlockIdentity blocks a subject of an identity provider: it can no longer call, vote or sign in, and calls that wait with its request or its vote
// are not made. Who may block is as for [Ledger.CreateToken]. The error is [ErrBlock] if the subject cannot be one, or is blocked.
func (l *Ledger) BlockIdentity(ctx context.Context, by Caller, issuer, subject string) (made Block, err error) {
	err = l.changeBlock(ctx, by, issuer, subject, func(b *batch, name string) (payload, error) {
		old, err := b.Block(name)
		switch {
		case errors.Is(err, ErrNotFound):
			made = Block{Name: name, Since: b.now, By: by.Name}
			return &identityBlocked{Issuer: issuer, Subject: subject}, nil
		case err != nil:
			return nil, err
		}
		return nil, refusedBlock("%s of %s is blocked already, since %s by %s", subject, issuer, old.Since, visible.Text(old.By))
	})
	return made, err
}

// UnblockIdentity ends a block. Votes and requests from before count again. Who may is as for [Ledger.CreateToken]. The error is [ErrBlock] if the
// subject is not blocked.
func (l *Ledger) UnblockIdentity(ctx context.Context, by Caller, issuer, subject string) error {
	return l.changeBlock(ctx, by, issuer, subject, func(b *batch, name string) (payload, error) {
		_, err := b.Block(name)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil, refusedBlock("%s of %s is not blocked; pgfsm identity list shows who is", subject, issuer)
		case err != nil:
			return nil, err
		}
		return &identityUnblocked{Issuer: issuer, Subject: subject}, nil
	})
}

// changeBlock records the event that change returns, and the row that follows from it.
func (l *Ledger) changeBlock(ctx context.Context, by Caller, issuer, subject string, change func(*batch, string) (payload, error)) error {
	if err := checkSubject(issuer, subject); err != nil {
		return refusedBlock("%s", err)
	}
	name := policy.SubjectName(issuer, subject)
	return l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		p, err := change(b, name)
		if err != nil {
			return err
		}
		if err := b.add(nil, "", by.Name, p); err != nil {
			return err
		}
		rows := make(map[string]Block)
		if _, ends := p.(*identityUnblocked); ends {
			return b.DropBlock(name)
		}
		if err := projectBlock(rows, &Event{Index: b.entry.Index, At: b.now, By: by.Name}, p); err != nil {
			return err
		}
		return b.PutBlock(rows[name])
	})
}

// checkSubject validates the name of a subject: an issuer is a URL without a fragment, and a subject is printable ASCII.
func checkSubject(issuer, subject string) error {
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case !policy.HasSubject(issuer+"#") || len(issuer) > maxIssuer || strings.ContainsFunc(issuer, hidden) || strings.Contains(issuer, "#"):
		return fmt.Errorf("the issuer %q is not the URL of an identity provider, as the configuration has it", visible.Clip(issuer, MaxTokenName))
	case subject == "" || len(subject) > maxSubject || strings.ContainsFunc(subject, hidden):
		return fmt.Errorf("the subject %q is not 1 to %d printable ASCII characters without spaces", visible.Clip(subject, MaxTokenName), maxSubject)
	}
	return nil
}

// projectBlock applies one event to the blocks, by name. Writers and Verify both use it. It ignores events about anything else.
func projectBlock(all map[string]Block, e *Event, p payload) error {
	issuer, subject, ends := subjectOf(p)
	if issuer == "" {
		return nil
	}
	if err := checkSubject(issuer, subject); err != nil {
		return err
	}
	name := policy.SubjectName(issuer, subject)
	if _, is := all[name]; is != ends {
		return fmt.Errorf("%s is blocked twice, or unblocked without a block", visible.Clip(name, maxIssuer))
	}
	if ends {
		delete(all, name)
	} else {
		all[name] = Block{Name: name, Since: e.At, By: e.By, Entry: e.Index}
	}
	return nil
}

// subjectOf is whom an event blocks or unblocks.
func subjectOf(p payload) (issuer, subject string, ends bool) {
	switch p := p.(type) {
	case *identityBlocked:
		return p.Issuer, p.Subject, false
	case *identityUnblocked:
		return p.Issuer, p.Subject, true
	}
	return "", "", false
}

// blocksAfter computes all blocks from their events, which are in order.
func blocksAfter(events []logEvent) (map[string]Block, error) {
	all := make(map[string]Block)
	for i := range events {
		e := &events[i]
		if err := projectBlock(all, &e.event, e.payload); err != nil {
			return nil, fault("entries", entryKey(e.event.Index), err)
		}
	}
	return all, nil
}

// compareBlocks calls found for each block whose row is not what its events say.
func compareBlocks(r Reader, want map[string]Block, found func(name, what string) error) error {
	seen := make(map[string]bool, len(want))
	last := "the first"
	for have, err := range r.Blocks() {
		if err != nil {
			return unread("blocks", last, err)
		}
		last, seen[have.Name] = have.Name, true
		b, known := want[have.Name]
		switch what := differing(b, have); {
		case !known:
			err = found(have.Name, rowOfNothing)
		case what != "":
			err = found(have.Name, "its "+what+" is not what its events say")
		}
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if seen[name] {
			continue
		}
		if err := found(name, rowMissing); err != nil {
			return err
		}
	}
	return nil
}

// Blocked reports whether one of some actors is a blocked subject of an identity provider. Empty names and names of other actors are not.
func (l *Ledger) Blocked(ctx context.Context, names ...string) (is bool, err error) {
	err = l.Glance(ctx, func(r Reader) (err error) {
		_, is, err = blockOf(r, names...)
		return err
	})
	return is, err
}

// blockOf returns the first block of some actors.
func blockOf(r Reader, names ...string) (b Block, is bool, err error) {
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

// unblocked returns [ErrBlocked] if one of some actors is blocked.
func unblocked(r Reader, names ...string) error {
	b, is, err := blockOf(r, names...)
	if is {
		return &Refusal{Code: RefusedBlocked, Message: fmt.Sprintf("%s is blocked here since %s; an admin can end that with pgfsm identity unblock",
			b.Name, b.Since)}
	}
	return err
}

func refusedBlock(format string, args ...any) error {
	return &Refusal{Code: RefusedBlock, Message: fmt.Sprintf(format, args...)}
}
