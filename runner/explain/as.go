package explain

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// ParseAs reads an actor of an identity provider, as a person writes one: a JSON object with the members id, kind, client, on_behalf_of, groups
// and claims, of which only id and kind are required. Groups and claims that are missing are unknown.
func ParseAs(text []byte) (actor string, id *policy.Identity, err error) {
	var as struct {
		Claims     map[string]string `json:"claims"`
		Client     string            `json:"client"`
		Groups     *[]string         `json:"groups"`
		ID         string            `json:"id"`
		Kind       string            `json:"kind"`
		OnBehalfOf string            `json:"on_behalf_of"`
	}
	doc, err := canonical.JSON(text)
	switch {
	case err != nil:
	case json.Unmarshal(doc, &as, json.RejectUnknownMembers(true)) != nil:
		err = errors.New("it is not a JSON object with texts for id, kind, client and on_behalf_of, a list of texts for groups, and an object of texts for claims")
	case !policy.HasSubject(as.ID):
		err = fmt.Errorf("id is %q; give ISSUER#SUBJECT, such as https://login.example.com#8f1c, or use --actor", as.ID)
	case as.Kind != policy.ActorAgent && as.Kind != policy.ActorPerson:
		err = fmt.Errorf("kind is %q; give %s or %s", as.Kind, policy.ActorAgent, policy.ActorPerson)
	}
	if err != nil {
		return "", nil, err
	}
	id = &policy.Identity{Client: as.Client, Groups: as.Groups, Kind: as.Kind, OnBehalfOf: as.OnBehalfOf}
	for _, name := range slices.Sorted(maps.Keys(as.Claims)) {
		id.Claims = append(id.Claims, policy.Claim{Name: name, Value: as.Claims[name]})
	}
	if id.Groups != nil {
		slices.Sort(*id.Groups)
	}
	return as.ID, id, nil
}
