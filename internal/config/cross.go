package config

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/screen"
)

// checkParts compares the parts of a configuration with each other.
func (c *configFile) checkParts() {
	c.checkNames()
	for i := range c.Servers {
		at := path{"servers", c.Servers[i].Name}
		checkServer(c.file, at, c.Servers[i].Value)
		if c.Servers[i].Value.Auth.Person != nil {
			c.checkPerson(at.child("auth", "person"))
		}
	}

	c.checkUnique(path{"input", "deny"}, "rule", "id")
	for i := range c.Input.Deny {
		if len(c.Input.Deny[i].Find) == 0 {
			c.checkDeny(path{"input", "deny"}.item(i), &c.Input.Deny[i].Rule)
		}
	}
	c.checkRedact()

	c.checkUnique(path{"planner", "routes"}, "route", "id")
	for i := range c.Planner.Routes {
		c.checkRoute(path{"planner", "routes"}.item(i), c.Planner.Routes[i].Pattern)
	}

	c.checkEncrypted(path{"planner", "llm"}, "base_url", c.textAt(path{"planner", "llm", "base_url"}), "api_key")
	if collector := c.Telemetry.OTLP; collector != nil {
		checkHeaders(c.file, path{"telemetry", "otlp", "headers"}, collector.Headers)
		c.checkEncrypted(path{"telemetry", "otlp"}, "endpoint", collector.Endpoint, "headers")
	}

	c.checkUnique(path{"approvals", "hooks"}, "hook", "url")
	c.checkUnique(path{"identity", "issuers"}, "issuer", "issuer")

	for i := range c.Identity.Issuers {
		c.checkIssuer(path{"identity", "issuers"}.item(i), &c.Identity.Issuers[i])
	}

	c.checkAddresses(path{"serve"})
}

// textAt returns the text at a path; empty if there is none.
func (f *file) textAt(p path) string {
	if n := f.get(p); n != nil {
		return n.text
	}
	return ""
}

// checkUnique refuses two items of a list with the same value of a key.
func (f *file) checkUnique(p path, what, key string) {
	places := make(map[string]place)
	list := f.get(p)
	if list == nil {
		return
	}
	for i, item := range list.members {
		id := item.value.get(key)
		if first, twice := places[id.text]; twice {
			f.addFaultAt(id.at, p.item(i).String(), "keep one of them", "%s %s appears twice; first at %d:%d", what,
				quote(id.text), first.line, first.col)
		} else {
			places[id.text] = id.at
		}
	}
}

// checkEncrypted refuses secrets of a key that would cross the network unencrypted.
func (f *file) checkEncrypted(p path, urlKey, url, key string) {
	if v := f.get(p.child(key)); v != nil && (v.kind != isMap || len(v.members) > 0) && isUnencrypted(url) {
		f.addKeyFault(p.child(key), "use https", "%s could be read on the way: %s is plain http", p.child(key), urlKey)
	}
}

// checkHeaders refuses one header in two spellings: names differ by case only (RFC 9110, section
// 5.1).
func checkHeaders(f *file, p path, headers []Pair) {
	places := make(map[string]place)
	for _, h := range headers {
		f.checkUnseen(places, strings.ToLower(h.Name), f.findNearest(p.child(h.Name)).at)
	}
}

// checkServer compares the parts of a server with each other, and fills in its type.
func checkServer(f *file, p path, s *serverSettings) {
	switch {
	case s.Type != "":
	case s.Kind != "":
		s.Type = TypeClient
	case s.Command != "":
		s.Type = TypeStdio
	case s.URL != "":
		s.Type = TypeHTTP
	}

	if s.Timeout > s.TimeoutTotal && f.isWritten(p.child("timeout")) {
		f.addFault(p.child("timeout"), "raise timeout_total as well",
			"%s is %s, longer than timeout_total, which is %s",
			p.child("timeout"), writeDuration(s.Timeout), writeDuration(s.TimeoutTotal))
	}

	// A server that asks its client needs to know which one.
	if i := slices.IndexFunc(s.Expose, func(w string) bool { return slices.Contains(needsSession, w) }); i >= 0 &&
		s.Sessions != SessionsSession {
		f.addFault(p.child("expose"), "write sessions: "+SessionsSession+" as well, or leave "+s.Expose[i]+" out",
			"%s has %s, but clients share the sessions with the server", p.child("expose"), s.Expose[i])
	}

	checkHeaders(f, p.child("headers"), s.Headers)
	f.checkEncrypted(p, "url", s.URL, "headers")
	f.checkEncrypted(p, "url", s.URL, "auth")
	var own []string // the headers that auth sets
	if s.Auth.ClientCredentials != nil {
		own = append(own, "Authorization")
	}
	if person := s.Auth.Person; person != nil {
		own = append(own, person.header())
		if s.Sessions == SessionsOne {
			f.addFault(p.child("sessions"), "write sessions: "+SessionsIdentity+", or remove auth.person",
				"%s is %s, but each person needs a session of their own with the server", p.child("sessions"), SessionsOne)
		}
	}
	for _, h := range s.Headers {
		if slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(name, h.Name) }) {
			f.addKeyFault(p.child("headers", h.Name), "remove one of them",
				"%s has a header %s and auth, which sets that header", p, h.Name)
		}
	}
}

// checkPerson requires what connections of people need: keys that seal their credentials, and a ledger that keeps them.
func (c *configFile) checkPerson(p path) {
	switch {
	case c.Connections == nil:
		c.addFault(p, `write connections: {keys: ["${file:connections.key}"]}; openssl rand -base64 32 > connections.key makes a key`,
			"%s does not go without connections", p)
	case c.Serve.Record == RecordNone && c.Ledger == "":
		c.addFault(p, "remove serve.record, or name a ledger", "%s needs a ledger, and serve.record is %s", p, RecordNone)
	}
}

// checkDeny refuses a rule that the input gate cannot compile.
func (c *configFile) checkDeny(p path, rule *screen.Rule) {
	if _, err := screen.Compile([]screen.Rule{*rule}, policy.DefaultInputBytes); err != nil {
		if inner := errors.Unwrap(err); inner != nil { // omits the index in the list, which has one item
			err = inner
		}
		c.addFault(p.child("pattern"), "write a pattern for the requests to block", "%s is refused: %s",
			p.child("pattern"), err)
	}
}

// checkRoute compares the groups that args use with those of the pattern.
func (c *configFile) checkRoute(p path, pattern string) {
	re := regexp.MustCompile(pattern) // cannot panic: the format check compiled it
	args := p.child("args")
	var check func(n *node)
	check = func(n *node) {
		for _, m := range n.members {
			if strings.Contains(m.key, "${") {
				c.addFaultAt(m.at, args.String(), "write the key without ${…}",
					"a group can be in a value of args, not in a key")
			}
			check(m.value)
		}
		if n.kind != isText {
			return
		}
		if f := checkGroups(n.text, re); f != (fault{}) {
			c.addFaultAt(n.at, args.String(), f.remedy, "%s %s", args, f.problem)
		}
	}
	check(c.get(args))
}

// checkGroups checks the ${…} in one text of a route's args.
func checkGroups(s string, re *regexp.Regexp) fault {
	for {
		prefix, rest, found := strings.Cut(s, "${")
		if !found {
			return fault{}
		}
		if strings.HasSuffix(prefix, "$") {
			s = rest
			continue
		}
		name, rest, closed := strings.Cut(rest, "}")
		if !closed {
			return fault{"has a ${ that is never closed", "write $${ for the two characters themselves"}
		}
		if hasReference("${" + name) {
			return fault{"holds a reference; only values of headers, env and api_key may", remedyReference}
		}

		// A group has a number or a name.
		n, err := strconv.ParseUint(name, 10, 16)
		if err == nil && int(n) > re.NumSubexp() {
			return fault{"uses ${" + name + "}, but the pattern has " + strconv.Itoa(re.NumSubexp()) + " groups",
				"put parentheses around that part of the pattern, or correct the number"}
		}
		if err != nil && (name == "" || re.SubexpIndex(name) < 0) {
			return fault{"uses " + quote("${"+name+"}") + ", but the pattern has no group of that name",
				"write (?P<name>…) in the pattern, or a number"}
		}

		s = rest
	}
}

// checkNames refuses names of things that the configuration does not have.
func (c *configFile) checkNames() {
	names := c.Servers.names()
	checkKnown := func(at place, name string, p path) {
		i := c.Servers.index(name)
		if i >= 0 && c.Servers[i].Value.Kind != "" && p[0] != "limits" {
			c.addFaultAt(at, p.String(), "name an MCP server", "%s is a coding agent, whose tools pgfsm does not call",
				quote(name))
			return
		}
		if i < 0 {
			c.addFaultAt(at, p.String(), nearestOr(name, names, "configured are: "+strings.Join(names, ", ")),
				"no server %s is configured", quote(name))
		}
	}
	for i, route := range c.Planner.Routes {
		p := path{"planner", "routes"}.item(i).child("server")
		checkKnown(c.findNearest(p).value.at, route.Server, p)
	}
	for _, p := range []path{{"outputs"}, {"limits", "rate", "servers"}, {"limits", "rate", "tools"}} {
		if servers := c.get(p); servers != nil {
			for _, m := range servers.members {
				checkKnown(m.at, m.key, p.child(m.key))
			}
		}
	}
}
