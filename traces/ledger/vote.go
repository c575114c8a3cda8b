package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// Bounds of a ballot.
const (
	MaxReason = 1000 // bytes: ten sentences, which every list and every answer can carry
	MaxKey    = 255  // bytes of an Idempotency-Key: a UUID many times over
)

// A Ballot is one person's vote about one held call.
type Ballot struct {
	Run     string
	Binding canonical.Digest // digest of the request that the person saw
	By      Caller           // the caller that [Ledger.Authenticate] returned
	groups  []string         // the caller's groups on which the vote depends: see [votingGroups]
	Approve bool
	// Required for a denial; the requester sees it; invisible characters are recorded as escapes.
	Reason string
	Key    string // identifies a repetition, within a run and a person; may be empty
}

// Vote records a ballot, and the decision if the ballot decides. One denial decides at once.
// Approvals decide when as many different people agree as the quorum requires. The transaction that
// records the ballot makes all checks, so of several concurrent ballots exactly one decides.
//
// Vote returns the request with the ballot. If the same person votes again with the same key and
// content, Vote records nothing and returns the first result. The error is a [*Refusal] if the
// ballot does not count: [ErrToken], [ErrRole], [ErrBallot], [ErrUnknown], [ErrNotHeld],
// [ErrDecided], [ErrExpired], [ErrBinding], [ErrEligible], [ErrVoted], [ErrFresh] or
// [ErrKeyReused]. A ballot after the expiry records the expiry, unless it is already recorded.
func (l *Ledger) Vote(ctx context.Context, v Ballot) (RunRow, error) {
	if err := v.By.Allow(ActVote); err != nil {
		return RunRow{}, err
	}
	if err := v.checkValues(); err != nil {
		return RunRow{}, err
	}

	v.Reason = visible.Text(v.Reason) // agents, terminals and chats show it
	bundle, err := l.runBundle(ctx, v.Run)
	if err != nil {
		return RunRow{}, err
	}

	var row RunRow
	var refusal error // set if the ledger records the expiry and refuses the ballot
	err = l.commit(ctx, func(b *batch) (err error) {
		row, refusal, err = b.recordVote(&v, bundle, l.owner)
		return err
	})
	switch {
	case err != nil:
		return RunRow{}, err
	case refusal != nil:
		return RunRow{}, refusal
	}

	return row, nil
}

// recordVote checks a ballot and records it.
func (b *batch) recordVote(v *Ballot, bundle *policy.Bundle, owner string) (q RunRow, refusal, err error) {
	if err := v.By.recheckAction(b, b.now, ActVote); err != nil {
		return q, nil, err
	}
	if q, err = b.Run(v.Run); err != nil {
		return q, nil, explainNotFound(v.Run, err)
	}
	cast, err := readVotes(b, v.Run)
	if err != nil {
		return q, nil, err
	}

	// A repetition returns the first result, whatever has happened since.
	if c := v.earlierVote(cast); c != nil {
		if !v.equalsRecorded(c) {
			return q, nil, &Refusal{Code: RefusedKey, Message: fmt.Sprintf(
				"the key of this ballot came at %s with another one; every new ballot needs a new key", c.vote.At)}
		}
		q, err = requestAt(b, v.Run, c.entry)
		return q, nil, err
	}
	if err := checkOpen(&q, cast); err != nil {
		return q, nil, err
	}
	if !policy.IsBefore(b.now, q.Expires) {
		refusal := refusedExpired(&q)
		if q.Owner != "" {
			return q, refusal, nil // another process is ending the run, and a further event would make that fail
		}
		return q, refusal, b.addEventAndRow(&q, owner, &approvalExpired{Binding: q.Binding, Expires: q.Expires})
	}
	if err := v.checkPerson(b, &q, bundle, cast, b.now); err != nil {
		return q, nil, err
	}

	// One denial decides; approvals decide when enough different people agree.
	decides := !v.Approve || bundle.Agreed(heldCall(&q), b.now, append(votesOf(cast), v.asVote(b.now))).Allows()
	expires := ""
	if v.Approve && decides && q.Delegates() {
		settings, err := settingsOf(b, &q)
		if err != nil {
			return q, nil, err
		}
		expires = settings.approvalExpires(b.now)
	}
	return q, nil, b.addEventAndRow(&q, v.By.Name, &approvalVote{
		Binding:    v.Binding,
		Decides:    decides,
		Credential: v.By.identityOrZero().Credential,
		Display:    v.By.identityOrZero().Display,
		Expires:    expires,
		Groups:     v.groups,
		Key:        v.Key,
		Reason:     v.Reason,
		Token:      v.By.TokenID,
		approve:    v.Approve,
	})
}

// CheckVoter returns the error that [Ledger.Vote] would return for every ballot of a person about a
// request at the time now; nil if a ballot would count.
func (l *Ledger) CheckVoter(r Reader, q *RunRow, who Caller, now string) error {
	var cast []recordedVote
	if q.Agreed > 0 || q.Status != Pending { // a denial would have decided
		var err error
		if cast, err = readVotes(r, q.RunID); err != nil {
			return err
		}
	}
	if err := cmp.Or(checkUndecided(q, cast, now), who.Allow(ActVote)); err != nil {
		return err
	}
	bundle, err := l.bundles.compiledBundle(r, q.Bundle)
	if err != nil {
		return err
	}
	v := Ballot{Run: q.RunID, Binding: q.Binding, By: who}
	return v.checkPerson(r, q, bundle, cast, now)
}

// checkPerson returns an error for a ballot of a person who may not vote now, or with another binding.
func (v *Ballot) checkPerson(r Reader, q *RunRow, bundle *policy.Bundle, cast []recordedVote, now string) error {
	if err := v.checkRight(r, bundle, q); err != nil {
		return err
	}
	if err := v.checkVoter(q, bundle, cast); err != nil {
		return err
	}
	return v.By.CheckFresh(r, freshnessOf(bundle, q.Policy), now)
}

// checkRight sets the groups of a ballot, and refuses a person of an identity provider to whom neither
// the configuration of the run nor the one that the log states now gives the right to vote.
func (v *Ballot) checkRight(r Reader, bundle *policy.Bundle, q *RunRow) error {
	if !v.By.isSubject() {
		v.groups = bundle.RoleGroups(v.By.Identity)
		return nil
	}
	ofRun, err := settingsOf(r, q)
	if err != nil {
		return err
	}
	current, err := currentSettings(r)
	if err != nil {
		return err
	}
	v.groups = votingGroups(bundle, v.By.Identity, ofRun, current)
	if err := checkVoteRight(v.By.Name, v.groups, ofRun, current); err != nil {
		return &Refusal{Code: RefusedRole, Message: err.Error() + ": a gateway records identity.may when it starts or reloads"}
	}
	return nil
}

// addEventAndRow adds an event about a request and stores the request.
func (b *batch) addEventAndRow(q *RunRow, by string, p payload) error {
	if err := b.addEvent(q, q.RunID, by, p); err != nil {
		return err
	}
	return b.PutRun(*q)
}

// checkValues validates a ballot without the ledger.
func (v *Ballot) checkValues() error {
	refuse := func(format string, args ...any) error {
		return &Refusal{Code: RefusedBallot, Message: fmt.Sprintf(format, args...)}
	}
	switch _, err := canonical.ParseDigest(string(v.Binding)); {
	case err != nil:
		return refuse("the digest of the request is missing or invalid: %s; pgfsm approvals show and the console show the digest", err)
	case len(v.Reason) > MaxReason:
		return refuse("the reason has %d bytes; at most %d are taken", len(v.Reason), MaxReason)
	case !utf8.ValidString(v.Reason):
		return refuse("the reason is not valid UTF-8")
	case !v.Approve && visible.Blank(v.Reason):
		return refuse("a denial needs a reason, which the requester reads")
	case len(v.Key) > MaxKey:
		return refuse("the key has %d bytes; at most %d are taken", len(v.Key), MaxKey)
	case !utf8.ValidString(v.Key) || visible.Text(v.Key) != v.Key:
		return refuse("the key holds characters that do not show")
	}
	return nil
}

// CheckUndecided returns the error that [Ledger.Vote] would return for every ballot about a run at
// the time now.
func CheckUndecided(r Reader, run, now string) error {
	q, err := r.Run(run)
	if err != nil {
		return explainNotFound(run, err)
	}
	cast, err := readVotes(r, run)
	if err != nil {
		return err
	}
	return checkUndecided(&q, cast, now)
}

func checkUndecided(q *RunRow, cast []recordedVote, now string) error {
	if err := checkOpen(q, cast); err != nil {
		return err
	}
	if !policy.IsBefore(now, q.Expires) {
		return refusedExpired(q)
	}
	return nil
}

// checkOpen returns an error for a request that no approver can decide about any more, or never
// could.
func checkOpen(q *RunRow, cast []recordedVote) error {
	switch {
	case q.Binding == "":
		return &Refusal{Code: RefusedNotHeld, Message: fmt.Sprintf("the request was never held; it is %s", q.Status)}
	case q.Status == Pending && q.Ended == "":
		return nil
	case q.Status == Expired:
		return refusedExpired(q)
	}
	var voters []string
	for i := range cast {
		if v := cast[i].vote; cast[i].decides || v.Outcome == policy.VoteApprove {
			voters = append(voters, v.Voter())
		}
		if cast[i].decides {
			return refusedDecided(q, &cast[i].vote, voters)
		}
	}
	return &Refusal{Code: RefusedNotHeld,
		Message: fmt.Sprintf("the request ended before a decision; it is %s", q.Status)}
}

// checkVoter returns an error for a ballot with another binding, or by a person who may not vote or
// has voted before.
func (v *Ballot) checkVoter(q *RunRow, bundle *policy.Bundle, cast []recordedVote) error {
	if v.Binding != q.Binding {
		return &Refusal{Code: RefusedBinding, Message: fmt.Sprintf(
			"what was seen is not what waits: %s was sent, %s waits; look at the request again", v.Binding, q.Binding)}
	}
	if verdict := bundle.Eligible(heldCall(q), v.By.Name, v.groups); !verdict.Allows() {
		return &Refusal{Code: RefusedEligible, Message: verdict.Reason}
	}
	for i := range cast {
		if c := &cast[i]; bundle.SamePerson(c.vote.By, v.By.Name) {
			return &Refusal{Code: RefusedVoted, Message: fmt.Sprintf("%s voted at %s (%s): one person has one vote",
				c.vote.By, c.vote.At, c.vote.Outcome)}
		}
	}
	return nil
}

// freshnessOf returns the value of the key fresh of a policy, in milliseconds; 0 if the policy has
// none.
func freshnessOf(bundle *policy.Bundle, id string) int64 {
	if content := bundle.Content().Policy; content != nil {
		for i := range content.Policies {
			if p := &content.Policies[i]; p.ID == id {
				return p.Fresh
			}
		}
	}
	return 0
}

// CheckFresh returns [ErrFresh] if ms is not 0 and the caller's session of the console began more
// than ms milliseconds before now, or if the caller has no session. ms is the key fresh of a
// policy. A session of a person of an identity provider began when the provider asked for the
// person's credentials.
func (c Caller) CheckFresh(r Reader, ms int64, now string) error {
	if ms == 0 {
		return nil
	}
	window := time.Duration(ms) * time.Millisecond
	if c.Session != "" {
		s, _, err := liveSession(r, c.Session, SessionOpen, now)
		if err != nil {
			return err
		}
		began := s.Created
		if s.Token == "" {
			began = s.AuthTime
		}
		if now <= addToTime(began, window) {
			return nil
		}
	}
	return &Refusal{Code: RefusedFresh,
		Message: fmt.Sprintf("the policy takes votes only in the console, and only within %s after signing in: "+
			"sign out there, sign in again, and vote", window)}
}

// earlierVote returns the earlier ballot of the same person with the same key; nil if there is
// none.
func (v *Ballot) earlierVote(cast []recordedVote) *recordedVote {
	for i := range cast {
		if c := &cast[i]; v.Key != "" && c.key == v.Key && policy.SamePerson(c.vote.By, v.By.Name) {
			return c
		}
	}
	return nil
}

// equalsRecorded reports whether a ballot is equal to a recorded one.
func (v *Ballot) equalsRecorded(c *recordedVote) bool {
	w := v.asVote(c.vote.At)
	w.By, w.Display, w.Groups = c.vote.By, c.vote.Display, c.vote.Groups
	return w.Equal(c.vote)
}

func (v *Ballot) asVote(at string) policy.Vote {
	w := policy.Vote{
		At:      at,
		Binding: v.Binding,
		By:      v.By.Name,
		Display: v.By.identityOrZero().Display,
		Groups:  v.groups,
		Outcome: policy.VoteDeny,
		Reason:  v.Reason,
	}
	if v.Approve {
		w.Outcome = policy.VoteApprove
	}
	return w
}

// A recordedVote is a vote with what the ledger recorded about it.
type recordedVote struct {
	vote    policy.Vote
	key     string
	token   string // the id of the voter's token
	decides bool
	entry   int64
}

// readVotes returns the recorded votes about a run, in order.
func readVotes(r Reader, run string) ([]recordedVote, error) {
	var cast []recordedVote
	for e, err := range EventsOf(r, run) {
		if err != nil {
			return nil, err
		}
		if e.Type != ApprovalApproved && e.Type != ApprovalDenied {
			continue
		}
		p, err := e.decodePayload()
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", e.Index, err)
		}
		v := p.(*approvalVote)
		cast = append(cast, recordedVote{
			vote:    v.asVote(e.At, e.By),
			key:     v.Key,
			token:   v.Token,
			decides: v.Decides,
			entry:   e.Index,
		})
	}
	return cast, nil
}

// asVote returns the vote in the form that the machine judges.
func (p *approvalVote) asVote(at, by string) policy.Vote {
	v := policy.Vote{
		At:      at,
		Binding: p.Binding,
		By:      by,
		Display: p.Display,
		Groups:  p.Groups,
		Outcome: policy.VoteDeny,
		Reason:  p.Reason,
	}
	if p.approve {
		v.Outcome = policy.VoteApprove
	}
	return v
}

// Votes returns the votes about a run in order, in the form that the machine judges.
func Votes(r Reader, run string) ([]policy.Vote, error) {
	cast, err := readVotes(r, run)
	return votesOf(cast), err
}

func votesOf(cast []recordedVote) []policy.Vote {
	votes := make([]policy.Vote, len(cast))
	for i := range cast {
		votes[i] = cast[i].vote
	}
	return votes
}

// requestAt returns a request as it was after an entry: the projection of its events up to that
// entry.
func requestAt(r Reader, run string, entry int64) (q RunRow, err error) {
	known := make(generations)
	for e, err := range r.EntriesOf(run) {
		if err != nil || e.Index > entry {
			return q, err
		}
		if err := q.applyEntry(r, &e, known); err != nil {
			return RunRow{}, err
		}
	}
	return q, nil
}

// applyEntry applies an entry to the request of its run.
func (q *RunRow) applyEntry(r Reader, e *Entry, known generations) error {
	decoded, err := e.decodeEvents()
	if err != nil {
		return err
	}
	for i := range decoded {
		one := &decoded[i]
		if err := known.resolve(r, one); err != nil {
			return fmt.Errorf("entry %d: %w", e.Index, err)
		}
		if err := projectEvent(q, &one.event, one.payload); err != nil {
			return fmt.Errorf("entry %d: %w", e.Index, err)
		}
	}
	q.Entry, q.Entries = e.Index, e.N+1
	return nil
}

// heldCall returns the request in the form in which the gate judges votes.
func heldCall(q *RunRow) *policy.Held {
	return &policy.Held{
		Actor:      q.Actor,
		OnBehalfOf: q.OnBehalfOf,
		Approvers:  q.Approvers,
		Binding:    q.Binding,
		Expires:    q.Expires,
		Quorum:     q.Quorum,
	}
}

func explainNotFound(run string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return &Refusal{Code: RefusedUnknown,
			Message: fmt.Sprintf("the ledger has no run %q", visible.Clip(run, MaxTokenName))}
	}
	return err
}

func refusedExpired(q *RunRow) error {
	return &Refusal{Code: RefusedExpired, Message: fmt.Sprintf(
		"the request expired at %s; expiry counts as denial, and who asked has to ask again", q.Expires)}
}

// refusedDecided returns a refusal that names who decided, when and how.
func refusedDecided(q *RunRow, last *policy.Vote, by []string) error {
	what := "approved"
	if last.Outcome != policy.VoteApprove {
		what, by = "denied", []string{last.Voter()}
	}
	message := fmt.Sprintf("the request was %s at %s by %s; it is %s", what, last.At, strings.Join(by, ", "), q.Status)
	if last.Reason != "" {
		message += " (" + last.Reason + ")"
	}
	return &Refusal{Code: RefusedDecided, Message: message}
}
