package ledger

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/screen"
)

// MaxTokenName bounds the name of a token, in bytes: every event and every list contains it.
const MaxTokenName = 128

// CreateToken creates a token for a person or a service and returns its text, which is stored
// nowhere. expires is a time in [policy.TimeForm], or empty for a token that never
// expires. As long as there is an active token of the role admin, by must be an admin. Otherwise
// every user who may write the ledger may create tokens. The error is [ErrTokenValues], [ErrRole]
// or [ErrToken] if nothing else failed.
func (l *Ledger) CreateToken(ctx context.Context, by Caller, name, role, expires string) (text string, made Token,
	err error) {
	if err := checkToken(name, role, expires); err != nil {
		return "", Token{}, err
	}

	id, text := newToken()
	p := &tokenCreated{
		Expires: expires,
		ID:      id,
		Name:    name,
		Role:    role,
		Secret:  canonical.Sum(kindToken, []byte(text)),
	}

	err = l.commit(ctx, func(b *batch) error {
		made = Token{}
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		if expires != "" && !policy.IsBefore(b.now, expires) {
			return refusedValues("the token would have expired at %s already; it is %s", expires, b.now)
		}
		if err := errors.Join(checkLookalike(b, name), checkOneKind(b, name, role)); err != nil {
			return err
		}
		if _, err := b.Token(id); !errors.Is(err, ErrNotFound) {
			return errors.Join(errors.New("the new token's id may be taken already"), err)
		}
		return b.addToken(&made, by.Name, p)
	})
	if err != nil {
		return "", Token{}, err
	}

	return text, made, nil
}

// RevokeToken ends a token at once and, with the last token of a person, the person's connections. The
// rules of [Ledger.CreateToken] say who may revoke. The error is [ErrTokenID] if there is no such token, or if it was revoked before.
func (l *Ledger) RevokeToken(ctx context.Context, by Caller, id string) (revoked Token, err error) {
	err = l.commit(ctx, func(b *batch) error {
		revoked = Token{}
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		t, err := b.Token(id)
		switch {
		case errors.Is(err, ErrNotFound):
			return &Refusal{Code: RefusedTokenID,
				Message: fmt.Sprintf("no token has the id %q; pgfsm token list shows all",
					visible.Clip(id, MaxTokenName))}
		case err != nil:
			return err
		case t.Revoked != "":
			return &Refusal{Code: RefusedTokenID,
				Message: fmt.Sprintf("the token %s was revoked at %s", t.ID, t.Revoked)}
		}
		revoked = t
		if err := b.addToken(&revoked, by.Name, &tokenRevoked{ID: id}); err != nil || t.Role != RolePerson {
			return err
		}
		return b.endWithoutToken(by.Name, t.Name)
	})
	l.recent.forget(id) // also if the outcome of the commit is unknown
	return revoked, err
}

// endWithoutToken ends the connections of a person who has no valid token left.
func (b *batch) endWithoutToken(by, person string) error {
	for t, err := range b.Tokens() {
		if err != nil || t.Name == person && t.Role == RolePerson && t.Active(b.now) {
			return err
		}
	}
	return b.endAllConnections(by, EndTokenRevoked, person)
}

// Tokens returns all tokens, also expired and revoked ones, oldest first.
func Tokens(r Reader) (tokens []Token, err error) {
	for t, err := range r.Tokens() {
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// addToken records an event about a token.
func (b *batch) addToken(t *Token, by string, p payload) error {
	if err := b.addEvent(nil, "", by, p); err != nil {
		return err
	}
	if err := projectToken(t, &Event{Index: b.entry.Index, At: b.now}, p); err != nil {
		return err
	}
	return b.PutToken(*t)
}

// projectToken applies one event to a token. Writers and Verify both use it. It ignores events
// about other tokens.
func projectToken(t *Token, e *Event, p payload) error {
	switch p := p.(type) {
	case *tokenCreated:
		if t.ID != "" {
			return ruleTokens.Broken("the token %s is created twice", p.ID)
		}
		if p.Expires != "" && !isTime(p.Expires) {
			return ruleForm.Broken("the token %s expires at %q, which is no time", p.ID, p.Expires)
		}
		*t = Token{
			Created: e.At,
			Expires: p.Expires,
			ID:      p.ID,
			Name:    p.Name,
			Role:    p.Role,
			Secret:  p.Secret,
			Entry:   e.Index,
		}
	case *tokenRevoked:
		if t.ID != p.ID || t.Revoked != "" {
			return ruleTokens.Broken("the token %s is revoked, which is not there or is revoked already", p.ID)
		}
		t.Revoked, t.Entry = e.At, e.Index
	}
	return nil
}

// newToken generates the id and the text of a token.
func newToken() (id, text string) {
	random := make([]byte, idBytes+secretBytes)
	rand.Read(random) // never returns an error: a failure ends the process
	id = strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:idBytes]))
	return id, tokenPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(random[idBytes:])
}

// mayManage returns an error unless the caller may now create or revoke tokens, or prune.
func mayManage(r Reader, by Caller, now string) error {
	if by.TokenID != "" || by.isSubject() {
		return by.recheckAction(r, now, ActManage)
	}
	for t, err := range r.Tokens() {
		if err != nil {
			return err
		}
		if t.Role == RoleAdmin && t.Active(now) {
			return &Refusal{Code: RefusedRole,
				Message: "this ledger has an admin, so this needs a token of the role admin: set PGFSM_TOKEN"}
		}
	}
	return nil
}

func refusedValues(format string, args ...any) error {
	return &Refusal{Code: RefusedTokenValues, Message: fmt.Sprintf(format, args...)}
}

// checkToken validates a token's values without the ledger.
func checkToken(name, role, expires string) error {
	if !slices.Contains(Roles(), role) {
		return refusedValues("the role %q is not one of %s", visible.Clip(role, MaxTokenName),
			strings.Join(Roles(), ", "))
	}

	if expires != "" {
		if t, err := time.Parse(timeForm, expires); err != nil || t.Format(timeForm) != expires {
			return refusedValues("the expiry %q is not of the form %s", visible.Clip(expires, MaxTokenName), timeForm)
		}
	}

	shownName := visible.Clip(name, MaxTokenName)
	switch {
	case name == "" || len(name) > MaxTokenName:
		return refusedValues("the name has %d bytes; it must have 1 to %d", len(name), MaxTokenName)
	case !utf8.ValidString(name) || visible.Text(name) != name:
		return refusedValues("the name %s holds characters that do not show", shownName)
	case strings.TrimSpace(name) != name:
		return refusedValues("the name %q begins or ends with white space", shownName)
	case !norm.NFKC.IsNormalString(name):
		return refusedValues("the name %q is written in a form that looks like another: write %q", shownName,
			norm.NFKC.String(name))
	case skeletonOf(name) == skeletonOf(Anonymous):
		return refusedValues("the name %q looks like that of agents without a token", shownName)
	case policy.HasSubject(strings.ToLower(name)):
		return refusedValues("the name %q has the form of a subject of an identity provider", shownName)
	case strings.HasPrefix(strings.ToLower(name), policy.GroupPrefix):
		return refusedValues("the name %q has the form of a group in roles", shownName)
	case looksLocal(name):
		return refusedValues("the name %q begins with what looks like %s, as only the names of users of the operating system do", shownName, policy.LocalUser)
	}

	return nil
}

// checkLookalike rejects a name that people could mistake for the name of another token. Several
// tokens with one name belong to one person. A name in another letter case would be the same person
// for approvals, but another person for roles and counts. A name that looks the same would be
// another person for pgfsm, but the same person for readers. Revoked tokens count, because the
// record has their names. Within ASCII only letter case counts, because worker-6 and worker-9 are
// two names.
func checkLookalike(r Reader, name string) error {
	for t, err := range r.Tokens() {
		if err != nil {
			return err
		}
		if t.Name != name && (policy.SamePerson(t.Name, name) ||
			hasNonASCII(t.Name+name) && skeletonOf(t.Name) == skeletonOf(name)) {
			return refusedValues("the name %q looks like %q, which the token %s has: take that very name, or one that differs more",
				name, t.Name, t.ID)
		}
	}
	return nil
}

// checkOneKind rejects a token of a person with the name of an agent, or the reverse: calls of one name would use a
// person's account or not, and yet get each other's outcomes.
func checkOneKind(r Reader, name, role string) error {
	other := map[string]string{RoleAgent: RolePerson, RolePerson: RoleAgent}[role]
	for t, err := range r.Tokens() {
		if err != nil {
			return err
		}
		if t.Name == name && t.Role == other && t.Revoked == "" {
			return refusedValues("the name %q has the token %s of the role %s: revoke that one first, or take another name", name, t.ID, t.Role)
		}
	}
	return nil
}

// looksLocal reports whether people read the beginning of a name as [policy.LocalUser], even if its
// letters or its colon are other characters.
func looksLocal(name string) bool {
	word := strings.TrimSuffix(policy.LocalUser, ":")
	for i, r := range name {
		if strings.ContainsRune(colons, r) && skeletonOf(name[:i]) == skeletonOf(word) {
			return true
		}
	}
	return false
}

// colons lists the characters that look like a colon: U+003A and its confusables in Unicode's
// confusables.txt, except those that NFKC maps to U+003A.
const colons = ":\u02d0\u02f8\u0589\u05c3\u0703\u0704\u0903\u0a83\u16ec\u1803\u1809\u205a\u2236\ua4fd\ua789"

func skeletonOf(name string) string { return screen.Skeleton(screen.Fold(name)) }

func hasNonASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0
}

// maxTokenDays bounds a token's life, in days: ten years. A token may also never expire.
const maxTokenDays = 3660

// ParseExpiry parses when a token expires: some days or hours from now (90d, 12h), on a date, at a
// time, or never. The result is empty for never.
func ParseExpiry(s string, now time.Time) (string, error) {
	if s == "never" {
		return "", nil
	}
	if expiry, err := ParseTime(s); err == nil {
		return expiry, nil
	}
	if len(s) > 1 {
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
		unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour}[s[len(s)-1]]
		if err == nil && unit != 0 && n >= 1 && n <= uint64(maxTokenDays*24*time.Hour/unit) {
			return now.Add(time.Duration(n) * unit).UTC().Format(timeForm), nil
		}
	}
	return "", fmt.Errorf("%q: give 1 to %d days (90d), hours (12h), a date (2027-01-01) or never", s, maxTokenDays)
}

// tokensAfter computes all tokens from their events.
func tokensAfter(events []decodedEvent) (map[string]Token, error) {
	tokens := make(map[string]Token)
	for i := range events {
		e := &events[i]
		id := tokenID(e.payload)
		token := tokens[id]
		if err := projectToken(&token, &e.event, e.payload); err != nil {
			return nil, asFault("entries", entryKey(e.event.Index), err)
		}
		tokens[id] = token
	}
	return tokens, nil
}

// tokenID returns the id of the token that an event is about; empty for other events.
func tokenID(p payload) string {
	switch p := p.(type) {
	case *tokenCreated:
		return p.ID
	case *tokenRevoked:
		return p.ID
	}
	return ""
}

// Faults of a whole row.
const (
	rowMissing   = "it is missing"
	rowOfNothing = "no entry tells of it"
)

// compareTokens calls found for each token whose row differs from its events, and returns how many
// rows there are.
func compareTokens(r Reader, want map[string]Token, found func(id, what string) error) (rows int64, err error) {
	return compareRows("tokens", r.Tokens(), func(t Token) string { return t.ID }, want, found)
}

// compareRows calls found for each row of a table that differs from its events, and returns how
// many rows there are.
func compareRows[T any](table string, rows iter.Seq2[T, error], keyOf func(T) string, want map[string]T,
	report func(key, what string) error) (
	count int64, err error) {
	found := make(map[string]bool, len(want))
	last := "the first"

	for have, err := range rows {
		if err != nil {
			return count, unreadFault(table, last, err)
		}
		last = keyOf(have)
		count, found[last] = count+1, true
		row, known := want[last]
		switch what := differingColumn(row, have); {
		case !known:
			err = report(last, rowOfNothing)
		case what != "":
			err = report(last, "its "+what+" is not what its events say")
		}
		if err != nil {
			return count, err
		}
	}

	// What the events account for and no row has is missing.
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if found[key] {
			continue
		}
		if err := report(key, rowMissing); err != nil {
			return count, err
		}
	}

	return count, nil
}
