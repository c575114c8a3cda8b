package config

import (
	"slices"
	"strings"

	"pgfsm/policy"
)

// MaxActorGroups bounds the groups of an actor in a file.
const MaxActorGroups = 200

// actorShape is an actor of an identity provider, as people write one for a question or a test.
var actorShape = &shape{form: object, keys: []key{
	{name: "id", shape: subjectName, required: true, example: "https://login.example.com#8f1c", doc: "The actor, as in `actor.id`: `ISSUER#SUBJECT`."},
	{name: "kind", shape: &shape{form: text, enum: []string{policy.ActorAgent, policy.ActorPerson}}, required: true, doc: "What the actor is."},
	{name: "client", shape: clientID, doc: "The OAuth client of the token."},
	{name: "on_behalf_of", shape: subjectName, doc: "The person for whom an agent acts: `ISSUER#SUBJECT`."},
	{name: "groups", shape: &shape{form: list, max: MaxActorGroups, unique: ".", what: "group", each: &shape{form: text, max: MaxActorBytes}},
		example: "[oncall]", doc: "The actor's groups. Without this key they are unknown; `[]` means none."},
	{name: "claims", shape: &shape{form: table, max: MaxClaims, what: "claim", name: claimName, each: &shape{form: text, empty: true}},
		example: "{department: it}", doc: "The actor's claims, by the names that conditions use. All others are unknown."},
}}

var subjectName = &shape{form: text, max: MaxActorBytes, check: func(s string) fault {
	if !policy.HasSubject(s) {
		return fault{"is not ISSUER#SUBJECT, such as https://login.example.com#8f1c", "name requesters of no identity provider by actor"}
	}
	return checkShown(s)
}}

// ReadActor reads a JSON file with an actor of an identity provider. Groups and claims that are missing are unknown. The error is of type [Errors].
func ReadActor(name string, text []byte) (actor string, id *policy.Identity, err error) {
	src, text := checkSized(name, text, roomy)
	if len(src.faults) > 0 {
		return "", nil, src.err()
	}
	root := readJSON(src, text)
	src.judge(root, actorShape)
	if err := src.err(); err != nil {
		return "", nil, err
	}
	actor, id = root.actor()
	return actor, id, nil
}

// actor is the actor of a node that was judged to be one.
func (n *node) actor() (string, *policy.Identity) {
	id := &policy.Identity{Client: n.str("client"), Kind: n.str("kind"), OnBehalfOf: n.str("on_behalf_of")}
	if n.get("groups") != nil {
		id.Groups = new(slices.Sorted(slices.Values(n.texts("groups"))))
		if *id.Groups == nil {
			id.Groups = new([]string{})
		}
	}
	for _, m := range n.fields("claims") {
		id.Claims = append(id.Claims, policy.Claim{Name: m.key, Value: m.value.text})
	}
	slices.SortFunc(id.Claims, func(a, b policy.Claim) int { return strings.Compare(a.Name, b.Name) })
	return n.str("id"), id
}
