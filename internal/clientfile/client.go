// Package clientfile knows the files in which MCP clients list their servers: where each client has
// its file, how it writes an entry, and how an entry is added without touching the others.
package clientfile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// desktopFile is the file of Claude Desktop. It starts programs and opens no URL, and it expands no
// ${…}.
const desktopFile = "claude_desktop_config.json"

// A Client is a program that connects to the MCP servers which its own file lists.
type Client struct {
	Name  string // the name on the command line
	Key   string // the key of the servers' object in its file
	HTTP  bool   // by default the client connects to a URL; otherwise it starts a command
	Paste bool   // the file is not edited: it has comments, or its place is not known

	title string
	// A format that refers to a variable of the client's environment; empty if the file cannot.
	reference string
	url       string // the member for a URL; empty: url, which for Gemini CLI is an SSE endpoint
	typed     bool   // an entry with a URL needs a type
	file      string // where the client has its file; below the home folder if it begins with ~/
}

// codex is the name of the client whose file is TOML.
const codex = "codex"

// clients are in the order in which they are listed.
var clients = []Client{
	{Name: "claude", Key: "mcpServers", title: "Claude Code", reference: "${%s}", typed: true},
	{Name: "cursor", Key: "mcpServers", HTTP: true, title: "Cursor", reference: "${env:%s}",
		file: "~/.cursor/mcp.json"},
	{Name: "vscode", Key: "servers", HTTP: true, title: "VS Code", reference: "${env:%s}", typed: true,
		file: ".vscode/mcp.json"},
	{Name: "gemini", Key: "mcpServers", HTTP: true, title: "Gemini CLI", reference: "${%s}", url: "httpUrl",
		file: "~/.gemini/settings.json"},
	{Name: codex, Key: "mcp_servers", HTTP: true, Paste: true, title: "Codex", file: "~/.codex/config.toml"},
	{Name: "windsurf", Key: "mcpServers", HTTP: true, Paste: true, title: "Windsurf", reference: "${env:%s}",
		url:  "serverUrl",
		file: "~/.codeium/windsurf/mcp_config.json"},
	{Name: "zed", Key: "context_servers", HTTP: true, Paste: true, title: "Zed", file: "settings.json of Zed"},
	{Name: "other", Key: "mcpServers", HTTP: true, Paste: true, title: "the client", reference: "${%s}", typed: true,
		file: "the client's file of MCP servers"},
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
func Names() (names []string) {
	for i := range clients {
		names = append(names, clients[i].Name)
	}
	return names
}

// Path returns the path of the client's file on a system, by its GOOS and the variables of the
// environment.
func (c *Client) Path(system string, env func(string) string) (string, error) {
	var variable, rest string
	switch {
	case c.file == "": // Claude Desktop
		variable, rest = desktopFolder(system, env)
	case !strings.HasPrefix(c.file, "~/"):
		return filepath.FromSlash(c.file), nil
	case system == "windows":
		variable, rest = "USERPROFILE", c.file[2:]
	default:
		variable, rest = "HOME", c.file[2:]
	}

	folder := env(variable)
	if folder == "" {
		return "", fmt.Errorf("%s is not set, so it is not known where the file is: name it with --file", variable)
	}
	return filepath.Join(folder, filepath.FromSlash(rest)), nil
}

// desktopFolder returns the place of Claude Desktop's file below the folder that a variable names.
func desktopFolder(system string, env func(string) string) (variable, rest string) {
	switch {
	case system == "windows":
		return "APPDATA", "Claude/" + desktopFile
	case system == "darwin":
		return "HOME", "Library/Application Support/Claude/" + desktopFile
	case filepath.IsAbs(env("XDG_CONFIG_HOME")): // the specification says to ignore a relative one
		return "XDG_CONFIG_HOME", "Claude/" + desktopFile
	}
	return "HOME", ".config/Claude/" + desktopFile
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
	case !utf8.ValidString(to.Command + strings.Join(to.Args, "")):
		return nil, errors.New("a path cannot be written as JSON")
	case c.Name == codex:
		return codexEntry(to)
	case c.reference == "" && to.Token != "":
		return nil, fmt.Errorf("the file of %s takes nothing from the environment: leave --token-env out", c.title)
	}

	var e wire.Object
	token := strings.ReplaceAll(c.reference, "%s", to.Token)
	if to.URL == "" {
		e.AddIf(c.Name == "vscode", "type", `"stdio"`)
		addCommand(&e, to)
		if to.Token != "" {
			e.Add("env", wire.Single(to.TokenVariable, wire.Quote(token)))
		}
		return e.Value(), nil
	}

	e.AddIf(c.typed, "type", `"http"`) // Claude Code reads a URL without a type as a command that is missing
	e.Add(cmp.Or(c.url, "url"), wire.Quote(to.URL))
	if to.Token != "" {
		e.Add("headers", wire.Single("Authorization", wire.Quote("Bearer "+token)))
	}

	return e.Value(), nil
}

func addCommand(e *wire.Object, to Target) {
	e.Add("command", wire.Quote(to.Command))
	if len(to.Args) > 0 {
		e.Add("args", wire.Texts(to.Args))
	}
}

// codexEntry is an entry for Codex as JSON, which names the variable with the token.
func codexEntry(to Target) (jsontext.Value, error) {
	var e wire.Object
	switch {
	case to.URL != "":
		e.Add("url", wire.Quote(to.URL))
		if to.Token != "" {
			e.Add("bearer_token_env_var", wire.Quote(to.Token))
		}
	case to.Token != "" && to.Token != to.TokenVariable:
		return nil, fmt.Errorf("for a program, Codex passes a variable only under its own name: use --token-env %s",
			to.TokenVariable)
	default:
		addCommand(&e, to)
		if to.Token != "" {
			e.Add("env_vars", wire.Texts([]string{to.Token}))
		}
	}
	return e.Value(), nil
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
	// Strings and lists of strings are the same in TOML.
	wire.ForEachMember(entry, func(p wire.Piece) { text += fmt.Sprintf("%s = %s\n", p.Name, p.Value) })
	return text
}
