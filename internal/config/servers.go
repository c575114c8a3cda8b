package config

import (
	"crypto"
	"net/url"
	"strings"

	"pgfsm/policy"
)

// Server types. A [TypeClient] is a coding agent with tools that it executes itself.
const (
	TypeStdio  = "stdio"
	TypeSSE    = "sse"
	TypeHTTP   = "http"
	TypeClient = "client"
)

// ClientCredentials holds the client credentials for a server.
type ClientCredentials struct {
	policy.ClientCredentials
	ClientSecret string
	Signer       crypto.Signer `json:"-"` // the private key instead of a secret; [Loaded.Resolve] sets it
}

// PersonCredentials say how people connect accounts of their own to a server.
type PersonCredentials struct {
	OAuth  *PersonOAuth
	Secret *PersonSecret
}

// PersonOAuth says at which authorization server people connect.
type PersonOAuth struct {
	policy.PersonOAuth
	ClientSecret string
	Signer       crypto.Signer `json:"-"` // the private key; [Loaded.ResolveConnections] sets it
}

// PersonSecret says how a token that a person has pasted is sent, and where people get one.
type PersonSecret struct {
	policy.PersonSecret
	Hint string
}

// header returns the header with the credentials.
func (p *PersonCredentials) header() string {
	if p.OAuth != nil {
		return "Authorization"
	}
	return p.Secret.Header
}

// copyServer copies one server.
func (l *loader) copyServer(name string, s *serverSettings) {
	entry := path{"servers", name}
	up := s.Upstream
	up.Name = name
	if up.Type == TypeClient {
		up.ToolList = l.readClientTools(entry.child("tools"), name, s.Tools)
		// Nothing is called, so no time limits a call.
		up.ConnectTimeout, up.Timeout, up.TimeoutTotal, up.IdleTimeout = 0, 0, 0, 0
	}
	server := policy.Server{
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
		server.Sessions = up.Sessions
	}

	for _, h := range up.Headers {
		server.Headers = append(server.Headers, h.Name)
	}

	for _, e := range up.Env {
		server.Env = append(server.Env, e.Name)
	}

	if c := s.Auth.ClientCredentials; c != nil {
		up.Auth = c
		credentials := entry.child("auth", "client_credentials")
		// Without a resource in the file, the token is for the server itself.
		if !l.isWritten(credentials.child("resource")) {
			c.Resource = up.URL
		}
		l.warnQuery(credentials.child("token_url"), c.TokenURL)
		server.ClientCredentials = &c.ClientCredentials
	}

	if up.Person = s.Auth.Person; up.Person != nil {
		server.Person = l.copyPerson(entry.child("auth", "person"), &up)
	}

	l.warnQuery(entry.child("url"), up.URL)
	if strings.ContainsRune(up.Command, '/') {
		up.Command = l.resolvePath(up.Command)
		if !strings.ContainsRune(up.Command, '/') {
			up.Command = "./" + up.Command // without "./", exec would search PATH
		}
	}

	l.out.Servers = append(l.out.Servers, up)
	l.out.Content.Servers = append(l.out.Content.Servers, server)
}

// copyPerson returns what the bundle holds of people's credentials for a server.
func (l *loader) copyPerson(p path, up *Upstream) *policy.PersonCredentials {
	o := up.Person.OAuth
	if o == nil {
		return &policy.PersonCredentials{Secret: &up.Person.Secret.PersonSecret}
	}
	if !l.isWritten(p.child("oauth", "resource")) {
		o.Resource = up.URL
	}
	return &policy.PersonCredentials{OAuth: &o.PersonOAuth}
}

func (l *loader) warnQuery(at path, text string) {
	if u, err := url.Parse(text); err == nil && u.RawQuery != "" {
		l.addWarningAt(at, "the query of this URL is no secret: traces hold it")
	}
}
