// Package clientfile knows the files in which MCP clients list their servers: where each client has its file, how it writes an entry, and
// how an entry is added without touching the others.
package clientfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// desktopFile is the file of Claude Desktop. It starts programs and opens no URL, and it expands no ${…}.
const desktopFile = "claude_desktop_config.json"

// A Client is a program that connects to the MCP servers which its own file lists.
type Client struct {
	Name  string // the name on the command line
	Key   string // the key of the servers' object in its file
	HTTP  bool   // by default the client connects to a URL; otherwise it starts a command
	Paste bool   // the file is not edited: it has comments, or its place is not known

	title     string
	reference string // a format that refers to a variable of the client's environment; empty if the file cannot
	url       string // the member for a URL; empty: url
	typed     bool   // an entry with a URL needs a type
	path      func(system string, env func(string) string) (string, error)
}

// codex is the name of the client whose file is TOML.
const codex = "codex"

// clients are in the order in which they are listed.
var clients = []Client{
	{Name: "claude", Key: "mcpServers", title: "Claude Code", reference: "${%s}", typed: true, path: desktopPath},
	{Name: "cursor", Key: "mcpServers", HTTP: true, title: "Cursor", reference: "${env:%s}", path: home(".cursor", "mcp.json")},
	{Name: "vscode", Key: "servers", HTTP: true, title: "VS Code", reference: "${env:%s}", typed: true, path: fixed(filepath.Join(".vscode", "mcp.json"))},
	{Name: "gemini", Key: "mcpServers", HTTP: true, title: "Gemini CLI", reference: "${%s}", url: "httpUrl", path: home(".gemini", "settings.json")},
	{Name: codex, Key: "mcp_servers", HTTP: true, Paste: true, title: "Codex", path: home(".codex", "config.toml")},
	{Name: "windsurf", Key: "mcpServers", HTTP: true, Paste: true, title: "Windsurf", reference: "${env:%s}", url: "serverUrl",
		path: home(".codeium", "windsurf", "mcp_config.json")},
	{Name: "zed", Key: "context_servers", HTTP: true, Paste: true, title: "Zed", path: fixed("settings.json of Zed")},
	{Name: "other", Key: "mcpServers", HTTP: true, Paste: true, title: "the client", reference: "${%s}", typed: true,
		path: fixed("the client's file of MCP servers")},
}

// Find returns the client of a name.
func Find(name string) (*Client, error) {
	for i := range clients {
		if clients[i].Name == name {
			return &clients[i], nil
		}
	}
	return nil, fmt.Errorf("link knows no client %q; it knows %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all clients.
func Names() (all []string) {
	for i := range clients {
		all = append(all, clients[i].Name)
	}
	return all
}

// Path returns the path of the client's file on a system, by its GOOS and the variables of the environment.
func (c *Client) Path(system string, env func(string) string) (string, error) {
	return c.path(system, env)
}

// pathBelow returns a path below the folder that a variable names.
func pathBelow(env func(string) string, variable string, path ...string) (string, error) {
	if dir := env(variable); dir != "" {
		return filepath.Join(append([]string{dir}, path...)...), nil
	}
	return "", fmt.Errorf("%s is not set, so it is not known where the file is: name it with --file", variable)
}

func desktopPath(system string, env func(string) string) (string, error) {
	switch {
	case system == "windows":
		return pathBelow(env, "APPDATA", "Claude", desktopFile)
	case system == "darwin":
		return pathBelow(env, "HOME", "Library", "Application Support", "Claude", desktopFile)
	case filepath.IsAbs(env("XDG_CONFIG_HOME")): // the specification says to ignore a relative one
		return pathBelow(env, "XDG_CONFIG_HOME", "Claude", desktopFile)
	}
	return pathBelow(env, "HOME", ".config", "Claude", desktopFile)
}

// home is the place of a file in the home folder.
func home(path ...string) func(string, func(string) string) (string, error) {
	return func(system string, env func(string) string) (string, error) {
		if system == "windows" {
			return pathBelow(env, "USERPROFILE", path...)
		}
		return pathBelow(env, "HOME", path...)
	}
}

// fixed is the same place on every system.
func fixed(path string) func(string, func(string) string) (string, error) {
	return func(string, func(string) string) (string, error) { return path, nil }
}

// Title returns the name of the client that has a file at path, for people.
func (c *Client) Title(path string) string {
	if isDesktop(path) {
		return "Claude Desktop"
	}
	return c.title
}

func isDesktop(path string) bool { return strings.EqualFold(filepath.Base(path), desktopFile) }

// A Target describes the way from a client to a server.
type Target struct {
	URL           string // empty: the client starts Command
	Command       string
	Args          []string
	Token         string // the variable of the client's environment that holds its token; empty: it has none
	TokenVariable string // the variable in which Command expects the token
}

// Entry returns the entry of a server for the client's file at path.
func (c *Client) Entry(path string, to Target) (jsontext.Value, error) {
	switch {
	case isDesktop(path) && to.URL != "":
		return nil, errors.New("the file of Claude Desktop may hold no URL, or it may not start: leave --http out, or name " +
			"another client's file with --file")
	case isDesktop(path) && to.Token != "":
		return nil, errors.New("the file of Claude Desktop takes nothing from the environment, and a token does not belong into a file: " +
			"leave --token-env out")
	case c.Name == codex:
		return codexEntry(to)
	case c.reference == "" && to.Token != "":
		return nil, fmt.Errorf("the file of %s takes nothing from the environment: leave --token-env out", c.title)
	}
	var e struct {
		Type    string            `json:"type,omitzero"`
		Command string            `json:"command,omitzero"`
		Args    []string          `json:"args,omitzero"`
		Env     map[string]string `json:"env,omitzero"`
		URL     string            `json:"url,omitzero"`
		HTTPURL string            `json:"httpUrl,omitzero"`
		Server  string            `json:"serverUrl,omitzero"`
		Headers map[string]string `json:"headers,omitzero"`
	}
	token := strings.ReplaceAll(c.reference, "%s", to.Token)
	if to.URL != "" {
		switch c.url {
		case "httpUrl": // url is an SSE endpoint
			e.HTTPURL = to.URL
		case "serverUrl":
			e.Server = to.URL
		default:
			e.URL = to.URL
		}
		if c.typed { // Claude Code reads a URL without a type as a command that is missing
			e.Type = "http"
		}
		if to.Token != "" {
			e.Headers = map[string]string{"Authorization": "Bearer " + token}
		}
	} else {
		e.Command, e.Args = to.Command, to.Args
		if c.Name == "vscode" {
			e.Type = "stdio"
		}
		if to.Token != "" {
			e.Env = map[string]string{to.TokenVariable: token}
		}
	}
	return marshal(e)
}

// codexEntry is an entry for Codex as JSON, which names the variable with the token.
func codexEntry(to Target) (jsontext.Value, error) {
	var e struct {
		Command   string   `json:"command,omitzero"`
		Args      []string `json:"args,omitzero"`
		Variables []string `json:"env_vars,omitzero"`
		URL       string   `json:"url,omitzero"`
		Token     string   `json:"bearer_token_env_var,omitzero"`
	}
	switch {
	case to.URL != "":
		e.URL, e.Token = to.URL, to.Token
	case to.Token != "" && to.Token != to.TokenVariable:
		return nil, fmt.Errorf("for a program, Codex passes a variable only under its own name: use --token-env %s", to.TokenVariable)
	default:
		e.Command, e.Args = to.Command, to.Args
		if to.Token != "" {
			e.Variables = []string{to.Token}
		}
	}
	return marshal(e)
}

func marshal(entry any) (jsontext.Value, error) {
	doc, err := json.Marshal(entry, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("a path cannot be written as JSON: %w", err)
	}
	return doc, nil
}

// Lines are the text of an entry in the client's file.
func (c *Client) Lines(name string, entry jsontext.Value) string {
	if c.Name != codex {
		entry = entry.Clone()
		if err := entry.Indent(jsontext.WithIndent("  ")); err != nil {
			panic("an entry of ours is not JSON: " + err.Error())
		}
		return fmt.Sprintf("%q: %s\n", name, entry)
	}
	if strings.Contains(name, ".") {
		name = strconv.Quote(name)
	}
	text := fmt.Sprintf("[%s.%s]\n", c.Key, name)
	wire.ForEachMember(entry, func(p wire.Piece) { text += fmt.Sprintf("%s = %s\n", p.Name, p.Value) }) // strings and lists of strings are the same in TOML
	return text
}
