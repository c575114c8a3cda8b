package setup

import (
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/identity/connect"
	"pgfsm/internal/oauth"
	"pgfsm/traces/ledger/api"
)

// Connections returns the accounts of people that a configuration allows, with its secrets; nil if there are none. mask
// is called with each token before anybody else learns it.
func Connections(loaded *config.Loaded, secrets *config.ResolvedConnections, mask func(token string)) *api.Connectable {
	if secrets == nil {
		return nil
	}
	all := &api.Connectable{Keys: secrets.Keys, Idle: time.Duration(loaded.ConnectionIdle) * 24 * time.Hour}
	for i := range loaded.Servers {
		u := &loaded.Servers[i]
		if u.Person == nil {
			continue
		}
		added := api.ConnectableServer{Name: u.Name, Resource: u.URL, Machines: u.Auth != nil}
		if o, ok := secrets.OAuth[u.Name]; ok {
			added.OAuth = authorizationServer(u, &o, mask)
		} else {
			secret := u.Person.Secret
			added.Hint, added.Header, added.Prefix = secret.Hint, secret.Header, secret.Prefix
		}
		all.Servers = append(all.Servers, added)
	}
	return all
}

// authorizationServer returns the authorization server at which people connect to a server.
func authorizationServer(u *config.Upstream, o *config.PersonOAuth, mask func(token string)) *connect.Server {
	return &connect.Server{
		Client: oauth.Client{
			ID:     o.ClientID,
			Secret: o.ClientSecret,
			Key:    o.Signer,
			Alg:    o.Alg,
			KeyID:  o.KeyID,
			Issuer: o.Issuer,
		},
		URL:       u.URL,
		Resource:  o.Resource,
		Scopes:    o.Scopes,
		Endpoints: connect.Endpoints(o.Endpoints),
		Account:   o.Account,
		HTTP:      connect.NewHTTPClient(),
		MaskToken: mask,
	}
}

// peopleOf returns how people connect accounts, by server.
func peopleOf(loaded *config.Loaded) (all []*config.PersonCredentials) {
	for i := range loaded.Servers {
		all = append(all, loaded.Servers[i].Person)
	}
	return all
}
