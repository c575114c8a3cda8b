// Package clientfile knows the files in which MCP clients list their servers: where each client has its file, how it writes an entry, and
// how an entry is added without touching the others.
package clientfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// desktopFile is the file of Claude Desktop. It starts programs and opens no URL, and it expands no ${…}.
const desktopFile = "claude_desktop_config.json"

// A Client is a program that connects to the MCP servers which its own file lists.
type Client struct {
	Name string // on the command line
	Key  string // of the object of servers in its file
	HTTP bool   // by default the client connects to a URL; otherwise it starts a command

	title     string
	reference string // how the file refers to a variable of the client's environment: a format
	path      func(system string, env func(string) string) (string, error)
}

// clients are in the order in which they are listed.
var clients = []Client{
	{Name: "claude", Key: "mcpServers", title: "Claude Code", reference: "${%s}", path: desktopPath},
	{Name: "cursor", Key: "mcpServers", HTTP: true, title: "Cursor", reference: "${env:%s}", path: cursorPath},
	{Name: "vscode", Key: "servers", HTTP: true, title: "VS Code", reference: "${env:%s}", path: workspacePath},
}

// Find returns the client of a name.
func Find(name string) (*Client, error) {
	var names []string
	for i := range clients {
		if clients[i].Name == name {
			return &clients[i], nil
		}
		names = append(names, clients[i].Name)
	}
	return nil, fmt.Errorf("there is no client %q; there are %s", name, strings.Join(names, ", "))
}

// Path returns where the client has its file on a system, by its GOOS and the variables of the environment.
func (c *Client) Path(system string, env func(string) string) (string, error) {
	return c.path(system, env)
}

// below returns a path below the folder that a variable names.
func below(env func(string) string, variable string, path ...string) (string, error) {
	if dir := env(variable); dir != "" {
		return filepath.Join(append([]string{dir}, path...)...), nil
	}
	return "", fmt.Errorf("%s is not set, so it is not known where the file is: name it with --file", variable)
}

func desktopPath(system string, env func(string) string) (string, error) {
	switch {
	case system == "windows":
		return below(env, "APPDATA", "Claude", desktopFile)
	case system == "darwin":
		return below(env, "HOME", "Library", "Application Support", "Claude", desktopFile)
	case filepath.IsAbs(env("XDG_CONFIG_HOME")): // the specification says to ignore a relative one
		return below(env, "XDG_CONFIG_HOME", "Claude", desktopFile)
	}
	return below(env, "HOME", ".config", "Claude", desktopFile)
}

// cursorPath is the file with the servers of all folders.
func cursorPath(system string, env func(string) string) (string, error) {
	if system == "windows" {
		return below(env, "USERPROFILE", ".cursor", "mcp.json")
	}
	return below(env, "HOME", ".cursor", "mcp.json")
}

// workspacePath is the file with the servers of the working folder.
func workspacePath(string, func(string) string) (string, error) {
	return filepath.Join(".vscode", "mcp.json"), nil
}

// Title returns the name of the client that has a file at path, for people.
func (c *Client) Title(path string) string {
	if isDesktop(path) {
		return "Claude Desktop"
	}
	return c.title
}

func isDesktop(path string) bool { return strings.EqualFold(filepath.Base(path), desktopFile) }

// A Target is how a client reaches a server.
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
	}
	var e struct {
		Type    string            `json:"type,omitzero"`
		Command string            `json:"command,omitzero"`
		Args    []string          `json:"args,omitzero"`
		Env     map[string]string `json:"env,omitzero"`
		URL     string            `json:"url,omitzero"`
		Headers map[string]string `json:"headers,omitzero"`
	}
	token := fmt.Sprintf(c.reference, to.Token)
	if to.URL != "" {
		e.URL = to.URL
		if c.Name != "cursor" { // Claude Code reads a URL without a type as a command that is missing
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
	doc, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("a path cannot be written as JSON: %w", err)
	}
	return doc, nil
}
