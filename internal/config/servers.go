package config

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// origin is the file of a server's definition: the configuration, or the client's file that it names.
type origin struct {
	file *File
	node *node
	path string
}

// servers copies the servers of the configuration, and those that it lists from a client's file.
func (l *loader) servers() {
	c := l.client()
	for _, m := range l.file.root.fields("servers") {
		if m.value.get("digest") == nil {
			l.server(m.key, origin{l.file, m.value, "servers." + m.key})
		} else if n := l.listed(c, m); n != nil {
			l.server(m.key, origin{c.file, n, join(c.key, m.key)})
		}
	}
	if c == nil {
		return
	}
	if err := c.file.src.err(); err != nil {
		l.faults = append(l.faults, err.(Errors)...)
	}
	var others []string
	for i := range c.servers {
		if m := &c.servers[i]; l.file.root.get("servers").get(m.key) == nil && !m.disabled() {
			others = append(others, quote(m.key))
		}
	}
	if n := len(others); n > 0 {
		if n > maxNamed {
			others = append(others[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
		}
		l.warn(l.file.src, l.file.root.get("mcp_servers").at,
			"pgfsm does not start these servers of %s, because \"servers\" does not list them: %s",
			c.file.src.name, strings.Join(others, ", "))
	}
}

// maxNamed bounds how many servers one warning names.
const maxNamed = 20

// client reads the client's file that the configuration names, if it names one and it can be read.
func (l *loader) client() *client {
	at := l.file.root.get("mcp_servers")
	if at == nil {
		return nil
	}
	path := l.file.resolve(at.text)
	l.out.ClientFile = path
	text, err := l.open(path)
	if err != nil {
		l.file.src.fault(at.at, "mcp_servers", "", "%s cannot be read: %s", path, reason(err))
		return nil
	}
	c, err := readClient(path, text)
	if err != nil {
		l.faults = append(l.faults, err.(Errors)...)
		return nil
	}
	return c
}

// listed returns the definition of a server that the configuration lists by digest, or notes why there is none.
func (l *loader) listed(c *client, m member) *node {
	if c == nil {
		return nil // that is a fault already
	}
	src, path := l.file.src, "servers."+m.key+".digest"
	entry := c.get(m.key)
	if entry == nil {
		var names []string
		for _, s := range c.servers {
			if namePattern.MatchString(s.key) { // the others are not fit to be printed
				names = append(names, clip(s.key))
			}
		}
		src.fault(m.at, path, cmp.Or(Nearest(m.key, names), "remove it"), "%s has no server %s",
			c.file.src.name, quote(m.key))
		return nil
	}
	is := entry.digest()
	if at := m.value.get("digest"); canonical.Digest(at.text) != is {
		src.fault(at.at, path, "if that is what you want, write digest: "+string(is),
			"the entry %s of %s has another digest; it now says: %s", quote(m.key), c.file.src.name, entry.now())
		return nil
	}
	return c.adopt(entry, m.value)
}

func (l *loader) server(name string, from origin) {
	n, src := from.node, from.file.src
	up := Upstream{
		Name: name, Type: serverType(n), URL: n.str("url"), Command: n.str("command"),
		Args:           n.texts("args"),
		ConnectTimeout: n.millis("connect_timeout"), Timeout: n.millis("timeout"), TimeoutTotal: n.millis("timeout_total"),
		IdleTimeout: n.millis("idle_timeout"), Sessions: n.str("sessions"),
	}
	s := policy.Server{Name: up.Name, Type: up.Type, URL: up.URL, Command: up.Command, Args: up.Args,
		ConnectTimeout: up.ConnectTimeout, Timeout: up.Timeout, TimeoutTotal: up.TimeoutTotal}
	if up.Sessions != SessionsIdentity {
		s.Sessions = up.Sessions
	}
	for _, h := range n.fields("headers") {
		up.Headers, s.Headers = append(up.Headers, Pair{h.key, h.value.text}), append(s.Headers, h.key)
		l.literal(src, h.value, "the value of header "+h.key, "${env:NAME}")
	}
	for _, e := range n.fields("env") {
		up.Env, s.Env = append(up.Env, Pair{e.key, e.value.text}), append(s.Env, e.key)
		if secretName.MatchString(e.key) {
			l.literal(src, e.value, "the value of "+e.key, "${env:"+e.key+"}")
		}
	}
	if c := n.get("auth").get("client_credentials"); c != nil {
		s.ClientCredentials = l.clientCredentials(src, c, up.URL)
		up.Auth = &ClientCredentials{ClientCredentials: *s.ClientCredentials, ClientSecret: c.str("client_secret")}
	}
	if u, err := url.Parse(up.URL); err == nil && u.RawQuery != "" {
		l.warn(src, n.get("url").at, warnQuery)
	}
	if strings.ContainsRune(up.Command, '/') {
		up.Command = from.file.resolve(up.Command)
		if !strings.ContainsRune(up.Command, '/') {
			up.Command = "./" + up.Command // else it would be looked for in PATH
		}
	}
	l.out.Servers = append(l.out.Servers, up)
	l.out.origins = append(l.out.origins, from)
	l.out.Content.Servers = append(l.out.Content.Servers, s)
}

// clientCredentials are those of a server, without the client's secret and private key.
func (l *loader) clientCredentials(src *source, n *node, server string) *policy.ClientCredentials {
	c := &policy.ClientCredentials{
		Alg: n.str("alg"), Audience: n.str("audience"), ClientID: n.str("client_id"), Issuer: n.str("issuer"), KeyID: n.str("key_id"),
		Resource: server, Scopes: n.texts("scopes"), TokenURL: n.str("token_url"),
	}
	if resource := n.get("resource"); resource != nil {
		c.Resource = resource.text
	}
	l.literal(src, n.get("client_secret"), "client_secret", "${env:NAME}")
	l.literal(src, n.get("private_key"), "private_key", "${file:PATH}")
	if u, err := url.Parse(c.TokenURL); err == nil && u.RawQuery != "" {
		l.warn(src, n.get("token_url").at, warnQuery)
	}
	return c
}

const warnQuery = "the query of this URL is no secret: traces hold it"

// secretName finds the names that people give to variables with secrets in them.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|passphrase|credential|api_?key|private`)
