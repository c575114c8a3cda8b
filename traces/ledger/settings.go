package ledger

import (
	"errors"
	"slices"
	"strings"
	"time"

	"pgfsm/policy"
)

// Settings are what the log records of a configuration, so that its readers know who could vote or ask for
// others, how long an approval could be used, and how long the record is kept.
type Settings struct {
	// For how many milliseconds a client that makes its calls itself may use an approval; 0: until the hold expires.
	ClaimWithin int64 `json:"claim_within_ms,omitzero"`

	Issuers []string `json:"issuers,omitempty"` // of identity providers
	May     *May     `json:"may,omitempty"`     // nil without issuers
	// For how many days the record is kept; 0: the configuration does not say.
	Retention int `json:"retention_days,omitzero"`
	// Agents that may ask about calls for others of their identity provider (identity.speakers), as in [May].
	Speakers []string `json:"speakers,omitempty"`
}

// May lists who of the identity providers has a role of the ledger (identity.may): names of actors, and
// groups after [policy.GroupPrefix].
type May struct {
	Approve    []string `json:"approve,omitempty"`
	Audit      []string `json:"audit,omitempty"`
	Administer []string `json:"administer,omitempty"`
}

// knows reports whether a name is one of an identity provider of the configuration.
func (s *Settings) knows(name string) bool {
	issuer, _, _ := strings.Cut(name, "#")
	return slices.Contains(s.Issuers, issuer)
}

// giveVote reports whether the settings let a person of an identity provider vote.
func (s *Settings) giveVote(name string, groups []string) bool {
	id := &policy.Identity{Groups: &groups}
	return s.May != nil && s.knows(name) && slices.ContainsFunc(s.May.Approve, func(entry string) bool {
		group, isGroup := strings.CutPrefix(entry, policy.GroupPrefix)
		return isGroup && id.InGroup(group) || entry == name
	})
}

// approvalExpires returns until when a client that makes its calls itself may use an approval that was decided at a
// time; empty if that is until the hold expires.
func (s *Settings) approvalExpires(at string) string {
	t, err := time.Parse(timeForm, at)
	if s.ClaimWithin == 0 || err != nil {
		return ""
	}
	return time.UnixMilli(t.UnixMilli() + s.ClaimWithin).UTC().Format(timeForm) // a Duration would overflow
}

// votingGroups returns the groups of an identity on which a vote depends, sorted: those that roles of the
// run's bundle name, and those to which the settings give the right to vote.
func votingGroups(bundle *policy.Bundle, id *policy.Identity, settings ...*Settings) []string {
	groups := bundle.RoleGroups(id)
	for _, s := range settings {
		if s.May == nil {
			continue
		}
		for _, entry := range s.May.Approve {
			if group, isGroup := strings.CutPrefix(entry, policy.GroupPrefix); isGroup && id.InGroup(group) {
				groups = append(groups, group)
			}
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// checkVoteRight returns an error if none of the settings lets a person vote.
func checkVoteRight(name string, groups []string, settings ...*Settings) error {
	if slices.ContainsFunc(settings, func(s *Settings) bool { return s.giveVote(name, groups) }) {
		return nil
	}
	return ruleVoteRight.Broken("no recorded configuration gives this person the right to vote")
}

// A statedSettings is what the log states at a place: the settings of the last start or reload of a
// gateway before it, or, in a log without one, of the last command.
type statedSettings struct {
	Settings
	by Type // the type of the entry that states them
}

// add applies an entry with a generation.
func (s *statedSettings) add(kind Type, g *generation) {
	if kind == BundleActivated || s.by != BundleActivated {
		*s = statedSettings{g.Settings, kind}
	}
}

// currentSettings returns what the log states now.
func currentSettings(r Reader) (*Settings, error) {
	for _, kind := range []Type{BundleActivated, CommandStarted} {
		e, err := r.LastOfType(kind)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		single, err := e.singleEvent()
		if err != nil {
			return nil, err
		}
		return &single.payload.(interface{ generationOf() *generation }).generationOf().Settings, nil
	}
	return new(Settings), nil
}
