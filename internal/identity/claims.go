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

// identify fills the token's caller. The table in docs/operate/identity.md defines the actor.
func (t *token) identify() error {
	c := &t.claims
	client, err := c.client()
	if err != nil {
		return err
	}
	subject := t.provider.subject(t.all)
	if !validSubject(subject) {
		return errSubject
	}

	person := slices.Contains(t.provider.People, client)
	name := policy.SubjectName(c.Issuer, subject)
	id := &policy.Identity{Kind: policy.ActorAgent, Client: client, Display: t.provider.display(t.all)}
	if person {
		id.Kind = policy.ActorPerson
	}

	if raw, acts := t.all["act"]; acts {
		act, _ := raw.(map[string]any)
		issuer, named := act["iss"]
		_, nested := act["act"]
		subject := t.provider.subject(act)
		if person || nested || named && issuer != c.Issuer || !validSubject(subject) {
			return errAct
		}
		id.OnBehalfOf, name = name, policy.SubjectName(c.Issuer, subject)
		id.OnBehalfOfDisplay, id.Display = id.Display, t.provider.display(act)
	}

	id.Groups = groups(t.all, t.provider.Groups)
	for _, path := range t.provider.Claims {
		if value, ok := valueAt(t.all, path.Path).(string); ok && len(value) <= maxValueBytes &&
			visible.Text(value) == value {
			id.Claims = append(id.Claims, policy.Claim{Name: path.Name, Value: value})
		}
	}

	t.caller = web.Caller{Name: name, Identity: id, Expires: moment(c.Expires)}
	return nil
}

// client returns the one client that the token names.
func (c *claims) client() (client string, err error) {
	for _, id := range []*string{c.Authorized, c.ClientID, c.OktaClient, c.EntraV1} {
		if id == nil {
			continue
		}
		if !printable(*id, ' ', maxClientBytes) || client != "" && *id != client {
			return "", errClient
		}
		client = *id
	}
	if client == "" {
		return "", errClient
	}
	return client, nil
}

// subject returns the subject in a token, or in its act; empty if there is none.
func (p *provider) subject(of map[string]any) string {
	sub, _ := valueAt(of, cmp.Or(p.Subject, "/sub")).(string)
	return sub
}

// display returns the display name in a token, or in its act, escaped; empty if there is none.
// Users of many providers can change theirs.
func (p *provider) display(of map[string]any) string {
	name, _ := valueAt(of, p.Display).(string)
	if visible.Blank(name) {
		return ""
	}
	return visible.Text(visible.Cut(name, maxValueBytes, "…"))
}

func validSubject(sub string) bool { return printable(sub, '!', maxSubjectBytes) }

// printable reports whether text is 1 to limit printable ASCII characters from a first one on.
func printable(text string, first rune, limit int) bool {
	return text != "" && len(text) <= limit &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < first || r > '~' })
}

// groups returns the sorted groups at a pointer, or nil if they are unknown: a provider that leaves
// out some of them makes all unknown.
func groups(all map[string]any, pointer string) *[]string {
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
	for _, one := range list {
		group, ok := one.(string)
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

// scopes returns the scopes of an access token.
func (c *claims) scopes() (all []string) {
	for _, value := range slices.Concat(c.Scope, c.Scp) {
		all = append(all, strings.Fields(value)...)
	}
	return all
}
