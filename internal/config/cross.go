package config

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/screen"
)

// serverType is the type of a server: as written, or by its command or url.
func serverType(n *node) string {
	switch {
	case n.get("digest") != nil:
		return typeListed
	case n.get("type") != nil:
		return n.str("type")
	case n.get("command") != nil:
		return TypeStdio
	}
	return TypeHTTP
}

// typeListed is the type of a server that the configuration lists by digest.
const typeListed = "listed"

// foreignKeys are the keys that do not go with a type, and the key that it needs.
var foreignKeys = map[string]struct {
	needs   string
	foreign []string
}{
	typeListed: {"digest", []string{"type", "url", "headers", "auth", "command", "args", "env"}},
	TypeStdio:  {"command", []string{"url", "headers", "auth"}},
	TypeSSE:    {"url", []string{"command", "args", "env"}},
	TypeHTTP:   {"url", []string{"command", "args", "env"}},
}

func crossServer(j *judge, n *node, path string) {
	if at := n.get("url"); at != nil && strings.Contains(at.text, "@") {
		j.src.hide(at) // it may contain a password
	}
	typ := serverType(n)
	rule, known := foreignKeys[typ]
	if !known {
		return
	}
	if n.get("digest") == nil && n.get("type") == nil && n.get("command") == nil && n.get("url") == nil {
		j.src.fault(n.at, path, "write the command of a stdio server, or the url of an sse or http server",
			"%s has neither command nor url", path)
		return
	}
	if n.get(rule.needs) == nil {
		j.src.fault(n.at, join(path, rule.needs), "", "%s is of type %s and has no %s", path, typ, rule.needs)
	}
	for _, name := range rule.foreign {
		if m := n.member(name); m != nil {
			remedy, with := "remove it, or change the type", "type "+typ
			if typ == typeListed {
				remedy, with = "remove it; the mcp_servers file defines the server", "a digest"
			}
			j.src.fault(m.at, join(path, name), remedy, "%s does not go with %s", join(path, name), with)
		}
	}
	crossTimeouts(j, n, path)
	crossSessions(j, n, path)
	u, err := url.Parse(n.str("url"))
	headers := n.member("headers")
	if err == nil && u.Scheme == "http" && !loopback(u) && headers != nil && len(headers.value.members) > 0 {
		j.src.fault(headers.at, join(path, "headers"), "use https",
			"headers of %s could be read on the way: its url is plain http", path)
	}
	crossAuth(j, n, path)
}

// crossAuth refuses access tokens over plain http, and a second Authorization header.
func crossAuth(j *judge, n *node, path string) {
	auth := n.member("auth")
	if auth == nil {
		return
	}
	if u, err := url.Parse(n.str("url")); err == nil && u.Scheme == "http" && !loopback(u) {
		j.src.fault(auth.at, join(path, "auth"), "use https", "access tokens of %s could be read on the way: its url is plain http", path)
	}
	for _, m := range n.fields("headers") {
		if strings.EqualFold(m.key, "Authorization") {
			j.src.fault(m.at, join(path, "headers"), "remove one of them", "%s has a header Authorization and auth, which sets that header", path)
		}
	}
}

// crossCredentials wants either a client secret or a private key with the audience of its assertions.
func crossCredentials(j *judge, n *node, path string) {
	secret, key := n.member("client_secret"), n.member("private_key")
	switch {
	case secret == nil && key == nil:
		j.src.fault(n.at, path, `write client_secret: "${env:CRM_SECRET}", or private_key: "${file:crm.key}"`,
			"%s has neither client_secret nor private_key", path)
	case secret != nil && key != nil:
		j.src.fault(key.at, join(path, "private_key"), "remove one of them", "%s has both client_secret and private_key", path)
	case key != nil && n.get("issuer") == nil:
		j.src.fault(n.at, join(path, "issuer"), `write issuer: "https://login.example.com"`, "%s has a private_key and no issuer", path)
	case key == nil:
		for _, name := range []string{"issuer", "alg", "key_id"} {
			if m := n.member(name); m != nil {
				j.src.fault(m.at, join(path, name), "remove it", "%s does not go with client_secret", join(path, name))
			}
		}
	}
}

// crossTimeouts refuses a timeout that the timeout_total would cut short.
func crossTimeouts(j *judge, n *node, path string) {
	at, within := n.get("timeout"), writeDuration(policy.DefaultTimeoutTotal)
	if at == nil {
		return
	}
	if total := n.get("timeout_total"); total != nil {
		within = total.text
	}
	timeout, ok := parseDuration(at.text)
	total, well := parseDuration(within)
	if ok && well && timeout > total && timeout <= policy.MaxRunTimeout {
		j.src.fault(at.at, join(path, "timeout"), "raise timeout_total as well", "%s is %s, longer than timeout_total, which is %s",
			join(path, "timeout"), at.text, within)
	}
}

// crossHeaders refuses one header in two spellings: names differ by case only (RFC 9110, section 5.1).
func crossHeaders(j *judge, n *node, path string) {
	seen := make(map[string]place)
	for _, m := range n.members {
		low := strings.ToLower(m.key)
		if first, twice := seen[low]; twice {
			j.src.fault(m.at, join(path, m.key), "keep one of them",
				"the header %s stands twice; first at %d:%d", quote(m.key), first.line, first.col)
		}
		seen[low] = m.at
	}
}

// crossDeny lets the input gate compile a rule.
func crossDeny(j *judge, n *node, path string) {
	at := n.get("pattern")
	rule := screen.Rule{ID: n.str("id"), Pattern: n.str("pattern"), Reason: n.str("reason")}
	if rule.ID == "" || rule.Pattern == "" || rule.Reason == "" || checkPattern(rule.Pattern) != (fault{}) {
		return
	}
	if _, err := screen.Compile([]screen.Rule{rule}, policy.DefaultInputBytes); err != nil {
		if inner := errors.Unwrap(err); inner != nil { // without the place in a list of one
			err = inner
		}
		j.src.fault(at.at, join(path, "pattern"), "", "%s is refused: %s", join(path, "pattern"), err)
	}
}

// crossRoute compares the groups that args use with those of the pattern.
func crossRoute(j *judge, n *node, path string) {
	re, err := regexp.Compile(n.str("pattern"))
	args := n.get("args")
	if err != nil || args == nil {
		return
	}
	var names func(*node)
	names = func(n *node) {
		for _, item := range n.items {
			names(item)
		}
		for _, m := range n.members {
			if strings.Contains(m.key, "${") {
				j.src.fault(m.at, join(path, "args"), "", "a group can stand in a value of args, not in a key")
			}
			names(m.value)
		}
	}
	names(args)
	args.leaves(func(leaf *node) {
		if leaf.kind != isText {
			return
		}
		if f := checkGroups(leaf.text, re); f != (fault{}) {
			j.src.fault(leaf.at, join(path, "args"), f.remedy, "%s %s", join(path, "args"), f.problem)
		}
	})
}

// checkGroups judges the ${…} in one text of a route's args.
func checkGroups(s string, re *regexp.Regexp) fault {
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return fault{}
		}
		rest := s[i+2:]
		if i > 0 && s[i-1] == '$' {
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
		n, err := strconv.ParseUint(name, 10, 16)
		if err == nil && int(n) > re.NumSubexp() {
			return fault{"uses ${" + name + "}, but the pattern has " + strconv.Itoa(re.NumSubexp()) + " groups", ""}
		}
		if err != nil && (name == "" || re.SubexpIndex(name) < 0) {
			return fault{"uses " + quote("${"+name+"}") + ", but the pattern has no group of that name",
				"write (?P<name>…) in the pattern, or a number"}
		}
		s = rest
	}
}

// crossNames refuses routes and output types of servers that are not configured.
func crossNames(j *judge, n *node, _ string) {
	crossLedger(j, n)
	var names []string
	for _, m := range n.fields("servers") {
		names = append(names, m.key)
	}
	known := func(name string, at place, path string) {
		if n.get("servers").member(name) == nil && name != "" {
			j.src.fault(at, path, cmp.Or(Nearest(name, names), "configured are: "+strings.Join(names, ", ")),
				"no server %s is configured", quote(name))
		}
	}
	for _, m := range n.fields("servers") {
		if d := m.value.member("digest"); d != nil && n.get("mcp_servers") == nil {
			j.src.fault(d.at, "servers."+m.key+".digest", "write mcp_servers: .mcp.json",
				"servers.%s has a digest, and no mcp_servers file is named", m.key)
		}
	}
	for i, route := range n.get("planner").list("routes") {
		if s := route.get("server"); s != nil {
			known(route.str("server"), s.at, "planner.routes["+strconv.Itoa(i)+"].server")
		}
	}
	for _, m := range n.fields("outputs") {
		known(m.key, m.at, "outputs."+m.key)
	}
	for _, key := range []string{"servers", "tools"} {
		for _, m := range n.get("limits").get("rate").fields(key) {
			known(m.key, m.at, "limits.rate."+key+"."+m.key)
		}
	}
}
