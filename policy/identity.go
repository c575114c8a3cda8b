package policy

import (
	"slices"
	"strings"

	"pgfsm/policy/condition"
)

// Kinds of actors. Which of them a caller of an identity provider is depends on the client that the
// provider's token names.
const (
	ActorAgent  = "agent"
	ActorPerson = "person"
)

// GroupPrefix begins an actor of a role that is a group of an identity provider.
const GroupPrefix = "group:"

// An Identity holds the claims of an identity provider about the actor of a request, as far as
// policies read them.
type Identity struct {
	// In the order of their names; a claim that is not listed is unknown.
	Claims []Claim `json:"claims,omitempty"`
	// The client id to which the provider issued the token.
	Client     string      `json:"client,omitempty"`
	Credential *Credential `json:"credential,omitempty"` // the token that said it
	// The actor's name for people; nothing is decided by it.
	Display string    `json:"display,omitempty"`
	Groups  *[]string `json:"groups,omitzero"` // sorted; nil: unknown
	Kind    string    `json:"kind,omitempty"`  // ActorAgent, ActorPerson
	// The person for whom an agent acts, in the form of an actor.
	OnBehalfOf string `json:"on_behalf_of,omitempty"`

	OnBehalfOfDisplay string `json:"on_behalf_of_display,omitempty"` // that person's name for people
}

// A Credential names a token of an identity provider (RFC 7515, section 4.1.4, and RFC 7519, section
// 4.1.7), so that the provider can say what it was. Nothing is decided by it.
type Credential struct {
	ID  string `json:"jti,omitempty"` // empty if the provider gives none, or a longer one than [MaxCredentialID]
	Key string `json:"kid"`           // the key that signed it
}

// MaxCredentialID bounds the ids of a token and of a key, in bytes.
const MaxCredentialID = 128

// Valid reports whether the credential has its form.
func (c *Credential) Valid() bool {
	return c.Key != "" && len(c.Key) <= MaxCredentialID && len(c.ID) <= MaxCredentialID
}

// A Claim is a value of a token, under the name that the configuration gives it.
type Claim = condition.Claim

// claimNames returns the configured claims; none if the configuration has no identity providers.
func (r *IdentityRules) claimNames() []string {
	if r == nil {
		return nil
	}
	return r.Claims
}

// SubjectName is the name of an actor whom an identity provider knows: subjects are unique for one
// issuer only.
func SubjectName(issuer, subject string) string { return issuer + "#" + subject }

// HasSubject reports whether a name is one of [SubjectName]. The names of tokens and of users of
// the operating system are not.
func HasSubject(name string) bool {
	return (strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")) && strings.Contains(name, "#")
}

// Principal returns the person whose own connections a call uses: the person for whom the actor acts, or the actor if
// an identity provider knows them, or if person says that their token of the ledger is a person's. It is empty for all
// others, such as users of the operating system and callers without a token.
func Principal(actor, onBehalfOf string, person bool) string {
	switch {
	case onBehalfOf != "" && HasSubject(actor) && HasSubject(onBehalfOf):
		return onBehalfOf
	case onBehalfOf == "" && (HasSubject(actor) || person && actor != "" && !HasNoToken(actor)):
		return actor
	}
	return ""
}

// Anonymous is the actor of callers without a token.
const Anonymous = "anonymous"

// HasNoToken reports whether the actor with a name never has a token of the ledger.
func HasNoToken(actor string) bool {
	return actor == Anonymous || strings.HasPrefix(actor, LocalUser) || HasSubject(actor)
}

// FullName is the name of an actor for people: the display name, if there is one, and the name that
// counts.
func FullName(name, display string) string {
	if display == "" {
		return name
	}
	return display + " (" + name + ")"
}

// InGroup reports whether the identity provider says that the actor is in a group. Nobody is in a
// group if the groups are unknown.
func (i *Identity) InGroup(group string) bool {
	return i != nil && i.Groups != nil && slices.Contains(*i.Groups, group)
}
