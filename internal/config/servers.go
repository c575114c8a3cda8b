package config

import (
	"crypto"
	"net/url"
	"strings"

	"pgfsm/policy"
)

// Server types.
const (
	TypeStdio = "stdio"
	TypeSSE   = "sse"
	TypeHTTP  = "http"
)

// ClientCredentials holds the client credentials for a server.
type ClientCredentials struct {
	policy.ClientCredentials
	ClientSecret string
	Signer       crypto.Signer `json:"-"` // the private key instead of a secret; [Loaded.Resolve] sets it
}

// server copies one server.
func (l *loader) server(name string, s *serverSettings) {
	at := path{"servers", name}
	up := s.Upstream
	up.Name = name
	to := policy.Server{
		Name:           up.Name,
		Type:           up.Type,
		URL:            up.URL,
		Command:        up.Command,
		Args:           up.Args,
		ConnectTimeout: up.ConnectTimeout,
		Timeout:        up.Timeout,
		TimeoutTotal:   up.TimeoutTotal,
	}

	if up.Sessions != SessionsIdentity {
		to.Sessions = up.Sessions
	}

	for _, h := range up.Headers {
		to.Headers = append(to.Headers, h.Name)
	}

	for _, e := range up.Env {
		to.Env = append(to.Env, e.Name)
	}

	if c := s.Auth.ClientCredentials; c != nil {
		up.Auth = c
		credentials := at.child("auth", "client_credentials")
		if !l.writes(credentials.child("resource")) {
			c.Resource = up.URL
		}
		l.warnQuery(credentials.child("token_url"), c.TokenURL)
		to.ClientCredentials = &c.ClientCredentials
	}

	l.warnQuery(at.child("url"), up.URL)
	if strings.ContainsRune(up.Command, '/') {
		up.Command = l.resolve(up.Command)
		if !strings.ContainsRune(up.Command, '/') {
			up.Command = "./" + up.Command // without "./", exec would search PATH
		}
	}

	l.out.Servers = append(l.out.Servers, up)
	l.out.Content.Servers = append(l.out.Content.Servers, to)
}

func (l *loader) warnQuery(at path, text string) {
	if u, err := url.Parse(text); err == nil && u.RawQuery != "" {
		l.warnAt(at, "the query of this URL is no secret: traces hold it")
	}
}
