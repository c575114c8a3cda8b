package config

import (
	"regexp"
	"slices"
	"strings"
)

// clientFile holds a client's own file of servers.
type clientFile struct {
	*file
	key     string // name of the member that holds the servers
	servers []member
}

// readClient reads a client's file. The file may have other members. It contains secrets as
// literals, so faults never show its lines.
func readClient(name string, text []byte) (*clientFile, error) {
	f, text := openFile(name, text, MaxFileBytes)
	f.secret = true
	c := &clientFile{file: f}
	if len(f.faults) == 0 {
		if f.root = f.readJSON(text); f.root != nil {
			c.findServers()
		}
	}
	return c, f.err()
}

// findServers finds the servers of a client's file, under mcpServers or, as in VS Code, servers.
func (c *clientFile) findServers() {
	found := false
	for _, key := range []string{"mcpServers", "servers"} {
		m := c.root.member(key)
		switch {
		case m == nil:
		case found:
			c.addFaultAt(m.at, key, "keep one of them", "the file has both mcpServers and servers")
		case m.value.kind != isMap:
			c.addFaultAt(m.value.at, key, `write {"NAME": {"command": "PROGRAM"}}`, "%s must be an object of names and values", key)
			found = true
		default:
			found, c.key, c.servers = true, key, m.value.members
		}
	}
	if !found {
		c.addFaultAt(c.root.at, "mcpServers", `the file is JSON, {"mcpServers": {"name": {"command": …}}}`, "the file has no mcpServers")
	}
}

// unsupported are keys of an entry that change the command or the connection in a way that pgfsm
// does not support.
var unsupported = []string{
	"auth", "authProviderType", "cwd", "dev", "envFile", "headersHelper", "httpUrl", "oauth", "sandbox",
	"sandboxEnabled", "serverUrl", "shell", "transport", "transportType", "workingDirectory",
}

// clientTypes maps the clients' names of server types to pgfsm's.
var clientTypes = map[string]string{"streamable-http": TypeHTTP, "streamableHttp": TypeHTTP}

// convertEntry converts a client's entry to one of a configuration and checks it. It notes faults,
// and then returns nil.
func (c *clientFile) convertEntry(m *member) *node {
	entry := path{c.key, m.key}

	names := configSchema().subschema(configSchema().get("properties").get("servers").get("propertyNames"))
	usable := regexp.MustCompile(names.textOf("pattern")).MatchString(m.key)
	if f := names.textFault(m.key, !usable); f != (fault{}) {
		c.addFaultAt(m.at, entry.String(), f.remedy, "the name %s %s", quote(m.key), f.problem)
	}

	out := &node{kind: m.value.kind, at: m.value.at, text: m.value.text}
	for _, k := range m.value.members {
		switch key := entry.child(k.key); {
		case slices.Contains(unsupported, k.key):
			c.addFaultAt(k.at, key.String(), writeYourself,
				"%s is not supported, and leaving it out would run something else", key)
		case k.key == "type":
			v := *k.value
			if clientType := clientTypes[v.text]; clientType != "" {
				v.text = clientType
			}
			out.members = append(out.members, member{k.key, k.at, &v})
		case k.key == "command", k.key == "args", k.key == "url":
			k.value.forEachLeaf(func(leaf *node) {
				if leaf.kind == isText && strings.Contains(leaf.text, "${") {
					c.addFaultAt(leaf.at, key.String(), writeYourself,
						"%s has a ${…}; only values of env and headers may", key)
				}
			})
			out.members = append(out.members, k)
		case k.key == "env", k.key == "headers":
			out.members = append(out.members, member{k.key, k.at, c.convertReferences(k.value, key)})
		} // pgfsm does not use other keys
	}

	if len(c.faults) > 0 {
		return nil
	}
	// Judging fills in defaults and converts durations: keep a copy of what was written.
	written := out.copyAt(out.at)
	if c.judgeNode(out, serverSchema(), entry); len(c.faults) > 0 {
		return nil
	}

	var s serverSettings
	decode(out, &s)
	m.value = out
	if checkServer(c.file, entry, &s); len(c.faults) > 0 {
		return nil
	}

	return written
}

const writeYourself = "write this server into pgfsm.yaml yourself"

// convertReferences converts a client's references, ${NAME} and ${env:NAME}.
func (c *clientFile) convertReferences(n *node, p path) *node {
	out := *n
	out.members = slices.Clone(n.members)
	for i, m := range out.members {
		if m.value.kind != isText {
			continue
		}
		v := *m.value
		var f fault
		if v.text, f = ourReferences(v.text); f != (fault{}) {
			key := p.child(m.key)
			c.addFaultAt(v.at, key.String(), f.remedy, "%s %s", key, f.problem)
		}
		out.members[i].value = &v
	}
	return &out
}

var (
	clientReference = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)

	// clientVariable matches variables that clients (VS Code, Cursor, Claude) set themselves, and
	// do not read from the environment.
	clientVariable = regexp.MustCompile(`\$\{(workspace|file|relativeFile|user_config|(userHome|cwd|pathSeparator|execPath|__dirname)\})`)
)

// ourReferences converts the references in a text of a client.
func ourReferences(s string) (string, fault) {
	others := clientReference.ReplaceAllString(s, "")
	if strings.Contains(others, "${") || strings.Contains(s, "$${") || clientVariable.MatchString(s) {
		return "", fault{"has a ${…} that only the client can read",
			"write ${env:NAME} and set the variable, or " + writeYourself}
	}
	return clientReference.ReplaceAllString(s, "$${env:$1}"), fault{}
}
