package config

import (
	"crypto"
	"fmt"
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

// origin is where a server is defined: in the configuration, or in the client's file that it names.
type origin struct {
	file *file
	path path
}

// servers copies the servers of the configuration, and the servers that it lists from a client's file.
func (l *loader) servers() {
	c := l.client()
	for _, s := range l.Servers {
		if s.Value.Digest == "" {
			l.server(s.Name, s.Value, origin{l.file, path{"servers", s.Name}})
		} else if adopted := l.adoptListed(c, s.Name, s.Value); adopted != nil {
			l.server(s.Name, adopted, origin{c.file, path{c.key, s.Name}})
		}
	}
	if c == nil {
		return
	}
	l.addFaults(c.err())
	l.out.Literals = append(l.out.Literals, c.literals...)
	var others []string
	for i := range c.servers {
		if m := &c.servers[i]; l.Servers.index(m.key) < 0 && !m.disabled() {
			others = append(others, quote(m.key))
		}
	}
	if n := len(others); n > 0 {
		if n > maxNamed {
			others = append(others[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
		}
		l.warn(l.file, l.find(path{"mcp_servers"}).value.at,
			"pgfsm does not start these servers of %s, because \"servers\" does not list them: %s", c.name, strings.Join(others, ", "))
	}
}

// maxNamed bounds the servers that one warning names.
const maxNamed = 20

// server copies one server.
func (l *loader) server(name string, s *serverSettings, from origin) {
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
		at := from.path.child("auth", "client_credentials")
		if !from.file.writes(at.child("resource")) {
			c.Resource = up.URL
		}
		l.warnQuery(from.file, at.child("token_url"), c.TokenURL)
		to.ClientCredentials = &c.ClientCredentials
	}
	l.warnQuery(from.file, from.path.child("url"), up.URL)
	if strings.ContainsRune(up.Command, '/') {
		up.Command = from.file.resolve(up.Command)
		if !strings.ContainsRune(up.Command, '/') {
			up.Command = "./" + up.Command // without "./", exec would search PATH
		}
	}
	l.out.Servers = append(l.out.Servers, up)
	l.out.origins = append(l.out.origins, from)
	l.out.Content.Servers = append(l.out.Content.Servers, to)
}

func (l *loader) warnQuery(f *file, at path, text string) {
	if u, err := url.Parse(text); err == nil && u.RawQuery != "" {
		l.warn(f, f.find(at).value.at, "the query of this URL is no secret: traces hold it")
	}
}
