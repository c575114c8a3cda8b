package identity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/policy"
)

// Bounds of the claims that are read from a token.
const (
	maxSubjectBytes = 255 // OpenID Connect Core 1.0 section 2
	maxClientBytes  = 256
	maxGroups       = 200
	maxValueBytes   = 256 // in a group, a claim or a display name
)

// isAccess refuses tokens of other uses. Their typ often is JWT too, and an audience can be
// configured that they have.
func (t *token) isAccess() error {
	c := &t.claims
	switch {
	case !slices.Contains(t.provider.TokenTypes, t.typ):
		return errType
	case c.Nonce != nil, c.AccessHash != nil, c.CodeHash != nil, c.Events != nil,
		c.Type != nil && !strings.EqualFold(*c.Type, "Bearer"), c.Use != nil && *c.Use != "access":
		return errNoAccess
	case c.Bound != nil:
		return errBound
	}
	return nil
}

// identifyCaller fills the token's caller. The table in docs/operate/identity.md defines the actor.
func (t *token) identifyCaller() error {
	c := &t.claims
	client, err := c.clientID()
	if err != nil {
		return err
	}
	subject := t.provider.subjectOf(t.all)
	if !ValidSubject(subject) {
		return errSubject
	}

	credential := &policy.Credential{Key: visible.Clip(t.keyID, policy.MaxCredentialID)}
	if c.ID != nil && isPrintable(*c.ID, '!', policy.MaxCredentialID) {
		credential.ID = *c.ID
	}
	person := slices.Contains(t.provider.People, client)
	name := policy.SubjectName(c.Issuer, subject)
	id := &policy.Identity{Kind: policy.ActorAgent, Client: client, Credential: credential, Display: t.provider.displayOf(t.all)}
	if person {
		id.Kind = policy.ActorPerson
	}

	// An act names the agent that acts; the subject is then the person for whom it acts (RFC 8693).
	if raw, acts := t.all["act"]; acts {
		act, _ := raw.(map[string]any)
		issuer, named := act["iss"]
		_, nested := act["act"]
		subject := t.provider.subjectOf(act)
		if person || nested || named && issuer != c.Issuer || !ValidSubject(subject) {
			return errAct
		}
		id.OnBehalfOf, name = name, policy.SubjectName(c.Issuer, subject)
		id.OnBehalfOfDisplay, id.Display = id.Display, t.provider.displayOf(act)
	}

	id.Groups = sortedGroups(t.all, t.provider.Groups)
	for _, path := range t.provider.Claims {
		if value, ok := valueAt(t.all, path.Path).(string); ok && len(value) <= maxValueBytes &&
			visible.Text(value) == value {
			id.Claims = append(id.Claims, policy.Claim{Name: path.Name, Value: value})
		}
	}

	t.caller = web.Caller{Name: name, Identity: id, Expires: timeOf(c.Expires)}
	return nil
}

// clientID returns the one client that the token names.
func (c *claims) clientID() (client string, err error) {
	for _, id := range []*string{c.Authorized, c.ClientID, c.OktaClient, c.EntraV1} {
		if id == nil {
			continue
		}
		if !isPrintable(*id, ' ', maxClientBytes) || client != "" && *id != client {
			return "", errClient
		}
		client = *id
	}
	if client == "" {
		return "", errClient
	}
	return client, nil
}

// subjectOf returns the subject in a token, or in its act; empty if there is none.
func (p *provider) subjectOf(members map[string]any) string {
	sub, _ := valueAt(members, cmp.Or(p.Subject, "/sub")).(string)
	return sub
}

// displayOf returns the display name in a token, or in its act, escaped; empty if there is none.
// Users of many providers can change theirs.
func (p *provider) displayOf(members map[string]any) string {
	name, _ := valueAt(members, p.Display).(string)
	if visible.Blank(name) {
		return ""
	}
	return visible.Text(visible.Cut(name, maxValueBytes, "…"))
}

// ValidSubject reports whether a text may be the subject of a token.
func ValidSubject(sub string) bool { return isPrintable(sub, '!', maxSubjectBytes) }

// isPrintable reports whether text is 1 to limit printable ASCII characters from a first one on.
func isPrintable(text string, first rune, limit int) bool {
	return text != "" && len(text) <= limit &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < first || r > '~' })
}

// sortedGroups returns the sorted groups at a pointer, or nil if they are unknown: a provider that
// leaves out some of them makes all unknown.
func sortedGroups(all map[string]any, pointer string) *[]string {
	if all["_claim_names"] != nil || all["hasgroups"] != nil {
		return nil // Entra ID has more groups than fit into the token
	}

	for name := range all { // in any order
		if strings.HasPrefix(name, "groups:") {
			return nil
		}
	}

	list, ok := valueAt(all, pointer).([]any)
	if !ok || len(list) > maxGroups {
		return nil
	}

	found := make([]string, 0, len(list))
	for _, value := range list {
		group, ok := value.(string)
		if !ok || group == "" || len(group) > maxValueBytes || visible.Text(group) != group ||
			!norm.NFKC.IsNormalString(group) {
			return nil
		}
		found = append(found, group)
	}

	slices.Sort(found)
	found = slices.Compact(found)

	return &found
}

// valueAt returns the value at a JSON Pointer that leads through objects, or nil.
func valueAt(value any, pointer string) any {
	if pointer == "" {
		return nil
	}
	for name := range jsontext.Pointer(pointer).Tokens() {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// grantedScopes returns the scopes of an access token.
func (c *claims) grantedScopes() (all []string) {
	for _, value := range slices.Concat(c.Scope, c.Scp) {
		all = append(all, strings.Fields(value)...)
	}
	return all
}
