package config

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// EntryDigest is the digest of one server's entry in a client's mcpServers file, including members that pgfsm does not use.
func EntryDigest(entry jsontext.Value) (canonical.Digest, error) {
	doc, err := canonical.JSON(entry)
	if err != nil {
		return "", err
	}
	return canonical.Sum("mcp server", doc), nil
}

// client is a client's own file of servers.
type client struct {
	file    *File
	key     string // the member that has the servers
	servers []member
}

// readClient reads a client's file. The file may have other members. It contains secrets as literals, so faults never show its lines.
func readClient(name string, text []byte) (*client, error) {
	src, text := checkText(name, text)
	src.lines = nil
	c := &client{file: &File{src: src}}
	if len(src.faults) > 0 {
		return nil, src.err()
	}
	root := readJSON(src, text)
	if root != nil {
		c.find(root)
	} else {
		explainComment(src, text)
	}
	if err := src.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// explainComment adds a remedy if a file is no JSON because of a comment, which some clients allow.
func explainComment(src *source, text []byte) {
	for _, f := range src.faults {
		lines := bytes.Split(text, []byte("\n"))
		if f.Line < 1 || f.Line > len(lines) {
			continue
		}
		rest := []rune(string(lines[f.Line-1]))
		rest = rest[min(max(0, f.Col-1), len(rest)):]
		if len(rest) > 0 && (rest[0] == '/' || rest[0] == '#') {
			f.Remedy = "comments are not accepted: remove them"
		}
	}
}

// find returns the servers of a client's file, under mcpServers or, as in VS Code, servers.
func (c *client) find(root *node) {
	src, found := c.file.src, (*member)(nil)
	for _, key := range []string{"mcpServers", "servers"} {
		m := root.member(key)
		switch {
		case m == nil:
		case found != nil:
			src.fault(m.at, key, "keep one of them", "the file has both mcpServers and servers")
		case m.value.kind != isMap:
			src.fault(m.value.at, key, "", "%s must be an object of names and values, not %s", key, kindNames[m.value.kind])
			found = m
		default:
			found, c.key, c.servers = m, key, m.value.members
		}
	}
	if found == nil {
		src.fault(root.at, "mcpServers", `the file is JSON, {"mcpServers": {"name": {"command": …}}}`,
			"the file has no mcpServers")
	}
}

// get returns the entry of a server, or nil.
func (c *client) get(name string) *member {
	for i := range c.servers {
		if c.servers[i].key == name {
			return &c.servers[i]
		}
	}
	return nil
}

// digest names an entry.
func (m *member) digest() canonical.Digest {
	d, err := EntryDigest(m.value.json())
	if err != nil {
		panic("settings: an entry that was read is not strict JSON: " + err.Error())
	}
	return d
}

// unsupported are keys of an entry that change the command or the connection in a way that pgfsm does not support.
var unsupported = []string{
	"auth", "authProviderType", "cwd", "dev", "envFile", "headersHelper", "httpUrl", "oauth", "sandbox", "sandboxEnabled",
	"serverUrl", "shell", "transport", "transportType", "workingDirectory",
}

// ownKeys are the keys that the configuration may add to a client's entry and that the connection needs.
var ownKeys = []string{"connect_timeout", "timeout", "timeout_total", "idle_timeout", "sessions"}

// clientTypes are the types of servers as clients write them.
var clientTypes = map[string]string{"streamable-http": TypeHTTP, "streamableHttp": TypeHTTP}

// adopt converts a client's entry to a server of the configuration and checks it, with the ownKeys of the configuration. It notes faults in the client's
// file, and then returns nil.
func (c *client) adopt(m *member, ours *node) *node {
	src, path := c.file.src, join(c.key, m.key)
	before := len(src.faults)
	j := &judge{src}
	j.text(&node{kind: isText, at: m.at, text: m.key}, plainName, "the name "+quote(m.key))
	if !j.is(m.value, isMap, path, "an object with keys", "") {
		return nil
	}
	out := &node{kind: isMap, at: m.value.at}
	for _, k := range m.value.members {
		at := join(path, k.key)
		if slices.Contains(unsupported, k.key) {
			src.fault(k.at, at, writeYourself, "%s is not supported, and leaving it out would run something else", at)
			continue
		}
		switch k.key {
		case "type":
			v := *k.value
			v.text = cmp.Or(clientTypes[v.text], v.text)
			k.value = &v
		case "command", "args", "url":
			k.value.leaves(func(leaf *node) {
				if leaf.kind == isText && strings.Contains(leaf.text, "${") {
					src.fault(leaf.at, at, writeYourself, "%s has a ${…}; only values of env and headers may", at)
				}
			})
		case "env", "headers":
			k.value = c.references(k.value, at)
		default:
			continue // it is in the digest, and is not ours
		}
		out.members = append(out.members, k)
	}
	j.value(out, serverShape, path)
	if len(src.faults) > before {
		return nil
	}
	for _, name := range ownKeys {
		if at := ours.get(name); at != nil {
			out.members = append(out.members, member{name, at.at, at})
		}
	}
	complete(out, serverShape)
	return out
}

const writeYourself = "write this server into pgfsm.yaml yourself, without a digest"

// references converts a client's references, ${NAME} and ${env:NAME}.
func (c *client) references(n *node, path string) *node {
	out := *n
	out.members = slices.Clone(n.members)
	for i, m := range out.members {
		if m.value.kind != isText {
			continue
		}
		v := *m.value
		var f fault
		if v.text, f = ourReferences(v.text); f != (fault{}) {
			at := join(path, m.key)
			c.file.src.fault(v.at, at, f.remedy, "%s %s", at, f.problem)
			v.text = "x" // it is refused already
		}
		out.members[i].value = &v
	}
	return &out
}

var clientReference = regexp.MustCompile(`^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)$`)

// clientVariable matches variables that clients (VS Code, Cursor, Claude) set themselves, and do not read from the environment.
var clientVariable = regexp.MustCompile(
	`^(workspace|file|relativeFile|user_config|(userHome|cwd|pathSeparator|execPath|__dirname)$)`)

func ourReferences(s string) (string, fault) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), fault{}
		}
		if strings.HasSuffix(before, "$") {
			return "", fault{"has a $${, which clients read in different ways", writeYourself}
		}
		inner, rest, closed := strings.Cut(rest, "}")
		name := clientReference.FindStringSubmatch(inner)
		if clientVariable.MatchString(inner) {
			name = nil
		}
		switch {
		case !closed:
			return "", fault{"has a ${ that is never closed", ""}
		case strings.Contains(inner, ":-"):
			return "", fault{"has a default value for a variable that is not set, which is not supported",
				"write ${NAME} and set the variable"}
		case name == nil:
			return "", fault{"has a ${…} that only the client can read",
				"write ${env:NAME} and set the variable, or " + writeYourself}
		}
		b.WriteString("${" + fromEnv + ":" + name[1] + "}")
		s = rest
	}
}
