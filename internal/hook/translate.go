package hook

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/visible"
)

// unnamedServer stands for the MCP server of a tool when the client does not name it.
const unnamedServer = "mcp"

// Names of tools of MCP servers.
const (
	mcpPrefix    = "mcp__" // mcp__SERVER__TOOL
	mcpSeparator = "__"
	cursorPrefix = "MCP:" // MCP:TOOL or MCP:SERVER:TOOL
)

// byteOrderMark stands before the input of Cursor's command on Windows.
var byteOrderMark = []byte("\ufeff")

// A translation is an event as far as it was understood.
type translation struct {
	form    *form
	members map[string]jsontext.Value
	event   Event
}

// Translate turns a client's input into an Event. If it fails, the Event has the kind as far as it
// is known.
func Translate(client string, input []byte) (Event, error) {
	f := findForm(client)
	if f == nil {
		return Event{}, errUnknownClient(client)
	}
	t := translation{form: f, event: Event{Client: f.name}}

	if err := json.Unmarshal(bytes.TrimPrefix(input, byteOrderMark), &t.members); err != nil || t.members == nil {
		return t.event, errors.New("the input is not one JSON object")
	}
	name, err := t.text(eventNames...)
	if err != nil {
		return t.event, err
	}
	ef, known := f.events[name]
	if !known {
		return t.event, fmt.Errorf("%s has no event named %s that this version knows", f.name, visible.Quote(visible.Clip(name, maxQuoted)))
	}

	t.event.Kind = ef.kind
	if err := t.readCommon(); err != nil {
		return t.event, err
	}
	switch ef.kind {
	case KindPrompt:
		err = t.readPrompt()
	case KindCall, KindResult, KindFailure:
		err = t.readCall(ef)
	}
	return t.event, err
}

// readCommon reads what every event has.
func (t *translation) readCommon() (err error) {
	for _, m := range []struct {
		to    *string
		names []string
	}{
		{&t.event.Session, t.form.session},
		{&t.event.Prompt, t.form.prompt},
		{&t.event.Agent, t.form.agent},
		{&t.event.Folder, t.form.folder},
	} {
		if *m.to, err = t.text(m.names...); err != nil {
			return err
		}
	}
	if t.event.Session == "" {
		return fmt.Errorf("the input has no %s", t.form.session[0])
	}
	return nil
}

func (t *translation) readPrompt() (err error) {
	source, err := t.text("source")
	if err != nil {
		return err
	}
	t.event.Source = cmp.Or(source, t.form.author)
	t.event.Text, err = t.text("prompt")
	return err
}

// readCall reads a call, and what became of it.
func (t *translation) readCall(ef eventForm) (err error) {
	if t.event.Call, err = t.text("tool_use_id"); err != nil {
		return err
	}
	if ef.tool != "" {
		err = t.readOwnTool(ef)
	} else {
		err = t.readTool(ef.mcp)
	}
	if err != nil {
		return err
	}
	if t.event.Server == "" && isCheck(t.event.Arguments) {
		t.event.Tool = CheckTool
	}

	if ef.failure != "" {
		t.event.Error, err = t.text(ef.failure)
		return err
	}
	if ef.result != "" {
		t.event.Result = t.members[ef.result]
		if t.event.Result == nil { // the Copilot agent's name
			t.event.Result = t.members["tool_result"]
		}
	}
	return nil
}

// isCheck reports whether the arguments of a shell have [CheckCommand].
func isCheck(arguments jsontext.Value) bool {
	var shell struct {
		Command jsontext.Value `json:"command"`
	}
	if err := json.Unmarshal(arguments, &shell); err != nil || shell.Command.Kind() != '"' {
		return false
	}
	command, err := jsontext.AppendUnquote(nil, shell.Command)
	return err == nil && string(command) == CheckCommand
}

// readOwnTool reads an event that belongs to one tool of the client.
func (t *translation) readOwnTool(ef eventForm) (err error) {
	arguments := map[string]jsontext.Value{}
	for _, name := range ef.arguments {
		if t.members[name] == nil {
			return fmt.Errorf("the input has no %s", name)
		}
		arguments[name] = t.members[name]
	}
	t.event.Tool = ef.tool
	t.event.Arguments, err = json.Marshal(arguments, json.Deterministic(true))
	return err
}

// readTool reads the members tool_name and tool_input.
func (t *translation) readTool(isMCP bool) error {
	name, err := t.text("tool_name")
	if err != nil {
		return err
	}
	if name == "" {
		return errors.New("the input has no tool_name")
	}
	if t.event.Server, t.event.Tool, err = t.splitTool(name, isMCP); err != nil {
		return err
	}

	arguments := t.members["tool_input"]
	if isMCP && arguments.Kind() == '"' {
		text, err := t.text("tool_input")
		if err != nil {
			return err
		}
		arguments = jsontext.Value(text)
	}
	if arguments.Kind() != '{' || !arguments.IsValid() {
		return errors.New("tool_input is not a JSON object")
	}
	t.event.Arguments = arguments
	return nil
}

// splitTool returns the server and the tool of a name. What a client says beside the name counts
// more than the name, which is ambiguous if the server's name contains two underscores.
func (t *translation) splitTool(name string, isMCP bool) (server, tool string, err error) {
	if server, tool, err = t.mcpContext(); err != nil || server != "" && tool != "" {
		return server, tool, err
	}

	if rest, found := strings.CutPrefix(name, mcpPrefix); found {
		if server != "" {
			rest, found = strings.CutPrefix(rest, normalizeServer(server)+mcpSeparator)
			if !found || rest == "" {
				return "", "", fmt.Errorf("the tool %s is not one of the server %s",
					visible.Quote(visible.Clip(name, maxQuoted)), visible.Quote(visible.Clip(server, maxQuoted)))
			}
			return server, rest, nil
		}
		server, tool, _ = strings.Cut(rest, mcpSeparator)
		if server == "" || tool == "" {
			return "", "", fmt.Errorf("the name %s has no server and tool", visible.Quote(visible.Clip(name, maxQuoted)))
		}
		return server, tool, nil
	}

	rest, isCursor := strings.CutPrefix(name, cursorPrefix)
	if !isMCP && !isCursor {
		return server, name, nil
	}
	tool = strings.TrimSpace(rest)
	if before, after, found := strings.Cut(tool, ":"); found && server == "" {
		server, tool = before, after
	}
	if server == "" {
		server = unnamedServer
	}
	if tool == "" {
		return "", "", fmt.Errorf("the name %s has no tool", visible.Quote(visible.Clip(name, maxQuoted)))
	}
	return server, tool, nil
}

// mcpContext returns what a client says about the MCP server of a call beside the tool's name.
func (t *translation) mcpContext() (server, tool string, err error) {
	var claude struct {
		Name string `json:"name"`
	}
	var gemini struct {
		Server string `json:"server_name"`
		Tool   string `json:"tool_name"`
	}
	for _, m := range []struct {
		name string
		to   any
	}{{"mcp_server", &claude}, {"mcp_context", &gemini}} {
		if value := t.members[m.name]; value != nil && value.Kind() != 'n' {
			if err := json.Unmarshal(value, m.to); err != nil {
				return "", "", fmt.Errorf("%s does not name a server", m.name)
			}
		}
	}
	if gemini.Server != "" {
		return gemini.Server, gemini.Tool, nil
	}
	if claude.Name != "" {
		return claude.Name, "", nil
	}
	server, err = t.text("mcp_server_name")
	return server, "", err
}

// normalizeServer returns the form in which Claude Code writes a server's name into a tool's name.
func normalizeServer(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// text returns the first member that has a text, or of a list of texts the first one. A member that
// is null or not there has none.
func (t *translation) text(names ...string) (string, error) {
	for _, name := range names {
		value := t.members[name]
		if value.Kind() == '[' {
			var texts []string
			if err := json.Unmarshal(value, &texts); err != nil {
				return "", fmt.Errorf("%s is not a list of texts", name)
			}
			if len(texts) > 0 && texts[0] != "" {
				return texts[0], nil
			}
			continue
		}
		if value == nil || value.Kind() == 'n' {
			continue
		}
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return "", fmt.Errorf("%s is not a text", name)
		}
		if text != "" {
			return text, nil
		}
	}
	return "", nil
}
