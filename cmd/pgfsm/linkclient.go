package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/visible"
)

// desktopFile is the file of Claude Desktop. It starts programs and opens no URL, and it puts nothing in for ${…}.
const desktopFile = "claude_desktop_config.json"

// A linkClient is a program that keeps a file of MCP servers, into which an entry of ours is written.
type linkClient struct {
	word   string // on the command line
	called string
	key    string // under which the file has its servers
	http   bool   // reached by HTTP where nobody says how
	named  bool   // an entry says its type, also where that shows
	// where the file is; env are the variables of this process.
	where func(system string, env func(string) string) (string, error)
	// reference is how the file refers to a variable of the client's environment.
	reference func(name string) string
}

// linkClients are the clients that are known, in the order in which they are listed.
func linkClients() []linkClient {
	prefixed := func(name string) string { return "${env:" + name + "}" }
	return []linkClient{
		{word: "claude", called: "Claude", key: "mcpServers", where: desktopPlace,
			reference: func(name string) string { return "${" + name + "}" }},
		{word: "cursor", called: "Cursor", key: "mcpServers", http: true, where: cursorPlace, reference: prefixed},
		{word: "vscode", called: "VS Code", key: "servers", http: true, named: true, where: workspacePlace,
			reference: prefixed},
	}
}

// findLinkClient is the client of a word.
func findLinkClient(word string) (linkClient, error) {
	var words []string
	for _, c := range linkClients() {
		if c.word == word {
			return c, nil
		}
		words = append(words, c.word)
	}
	return linkClient{}, fmt.Errorf("there is no client %q; there are %s", word, strings.Join(words, ", "))
}

// needed is a variable without which a place cannot be told.
func needed(env func(string) string, name string) (string, error) {
	if v := env(name); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("%s is not set, so it is not known where the file is: name it with --file", name)
}

// desktopPlace is where Claude Desktop keeps its file.
func desktopPlace(system string, env func(string) string) (string, error) {
	switch system {
	case "windows":
		dir, err := needed(env, "APPDATA")
		return filepath.Join(dir, "Claude", desktopFile), err
	case "darwin":
		home, err := needed(env, "HOME")
		return filepath.Join(home, "Library", "Application Support", "Claude", desktopFile), err
	}
	if dir := env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) { // a relative one is to be ignored
		return filepath.Join(dir, "Claude", desktopFile), nil
	}
	home, err := needed(env, "HOME")
	return filepath.Join(home, ".config", "Claude", desktopFile), err
}

// cursorPlace is where Cursor keeps the servers of all folders.
func cursorPlace(system string, env func(string) string) (string, error) {
	name := "HOME"
	if system == "windows" {
		name = "USERPROFILE"
	}
	home, err := needed(env, name)
	return filepath.Join(home, ".cursor", "mcp.json"), err
}

// workspacePlace is where VS Code keeps the servers of the folder it has open.
func workspacePlace(string, func(string) string) (string, error) {
	return filepath.Join(".vscode", "mcp.json"), nil
}

// A linkTarget is how a client shall reach the gateway.
type linkTarget struct {
	http     bool
	url      string   // with http
	command  string   // without
	args     []string // without
	variable string   // of the client's environment, with the token in it; empty: there is no token
}

// entry is what is written into the client's file at path.
func (c *linkClient) entry(path string, to linkTarget) (jsontext.Value, error) {
	desktop := strings.EqualFold(filepath.Base(path), desktopFile)
	switch {
	case desktop && to.http:
		return nil, errors.New("the file of Claude Desktop may hold no URL, or it may not start: leave --http out, or name " +
			"another client's file with --file")
	case desktop && to.variable != "":
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
	if to.http {
		e.URL = to.url
		if c.named || c.word == "claude" { // Claude Code takes a URL without a type for a command that is missing
			e.Type = "http"
		}
		if to.variable != "" {
			e.Headers = map[string]string{"Authorization": "Bearer " + c.reference(to.variable)}
		}
	} else {
		e.Command, e.Args = to.command, to.args
		if c.named {
			e.Type = "stdio"
		}
		if to.variable != "" {
			e.Env = map[string]string{tokenVariable: c.reference(to.variable)}
		}
	}
	doc, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("a path cannot be written as JSON: %w", err)
	}
	return doc, nil
}

// title is how the client is called that keeps a file.
func (c *linkClient) title(path string) string {
	switch base := filepath.Base(path); {
	case strings.EqualFold(base, desktopFile):
		return "Claude Desktop"
	case c.word == "claude":
		return "Claude Code"
	}
	return cmp.Or(c.called, visible.Text(path))
}
