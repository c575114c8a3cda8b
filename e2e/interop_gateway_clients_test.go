package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// Clients that others wrote talk through the gateway to servers that others wrote. Nobody knows of the gateway.

// clientServers are the servers, in the gateway's order, and the tools of each that are allowed.
var clientServers = []struct{ name, allowed string }{
	{"everything", "echo get-structured-content get-sum get-tiny-image trigger-long-running-operation"},
	{"filesystem", "read_text_file list_directory list_allowed_directories"},
	{"memory", "create_entities read_graph"},
	{"sequential-thinking", "sequentialthinking"},
}

// A gatewayCall is one call of a client, and what it must be answered.
type gatewayCall struct {
	server, tool, args string
	text               string // a part of the text of a result that reports no error
	code               string // of a refusal; empty: it is not refused
}

// allowedCalls all reach their server. ROOT stands for the folder that the filesystem server shows.
var allowedCalls = []gatewayCall{
	{"everything", "echo", `{"message": "hi"}`, "Echo: hi", ""},
	{"everything", "get-sum", `{"a": 2, "b": 3}`, "The sum of 2 and 3 is 5.", ""},
	{"everything", "get-structured-content", `{"location": "Chicago"}`, "Light rain", ""},
	{"everything", "get-tiny-image", `{}`, "image", ""},
	{"everything", "trigger-long-running-operation", `{"duration": 0.2, "steps": 4}`, "Long running operation completed.", ""},
	{"filesystem", "read_text_file", `{"path": "ROOT/boiler.txt"}`, "The boiler was serviced", ""},
	{"filesystem", "list_directory", `{"path": "ROOT"}`, "boiler.txt", ""},
	{"memory", "create_entities", `{"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}`, "", ""},
	{"memory", "read_graph", `{}`, "Ada", ""},
	{"sequential-thinking", "sequentialthinking",
		`{"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}`, "totalThoughts", ""},
}

// refusedCalls are calls of every tool that is offered and not allowed, and calls of allowed tools with arguments that are
// not in the schema although the server would take them.
func refusedCalls() (list []gatewayCall) {
	for i, s := range clientServers {
		for tool := range strings.FieldsSeq(offeredTools[i].tools) {
			if !slices.Contains(strings.Fields(s.allowed), tool) {
				list = append(list, gatewayCall{s.name, tool, `{}`, "", "tool_not_allowed"})
			}
		}
	}
	return append(list, gatewayCall{"memory", "delete_entities", `{"entityNames": ["Ada"]}`, "", "tool_not_allowed"},
		gatewayCall{"everything", "echo", `{"message": "hi", "more": 1}`, "", "arguments_invalid"})
}

// A clientOrder is what a client is to do, and a clientReport what came of it: see interop/clients/drive.mjs.
type clientOrder struct {
	URL      string       `json:"url"`
	Command  []string     `json:"command,omitzero"` // in place of the URL
	Calls    []clientCall `json:"calls"`
	Together bool         `json:"together,omitzero"` // all calls at once
	Roots    []string     `json:"roots,omitzero"`
	OAuth    *oauthClient `json:"oauth,omitzero"` // the client signs in
	Token    string       `json:"token,omitzero"` // the client has this token
}

// An oauthClient is the registration of a client. Without an id the client registers itself; with a secret it acts for nobody.
type oauthClient struct {
	ID     string `json:"client_id,omitzero"`
	Secret string `json:"client_secret,omitzero"`
	Issuer string `json:"issuer,omitzero"` // to which the secret may be sent
	Scope  string `json:"scope,omitzero"`  // that a client with a secret asks for by itself
}

type clientCall struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Meta      jsontext.Value `json:"_meta,omitzero"`
	Until     string         `json:"until,omitzero"` // the call is repeated, for a while, until its text holds this
}

type clientReport struct {
	Protocol       string              `json:"protocol"`
	Tools          []string            `json:"tools"`
	Answers        []clientAnswer      `json:"answers"`
	Authorizations []map[string]string `json:"authorizations"` // parameters of the authorization requests
}

type clientAnswer struct {
	IsError bool   `json:"isError"`
	Text    string `json:"text"`  // of all text blocks; and the other blocks' types
	Code    string `json:"code"`  // of the gateway's decision
	Fault   string `json:"fault"` // what the client threw instead
}

// clientTime bounds what one client does in one go.
const clientTime = 3 * time.Minute

// drive lets a client of interop/clients do what is in an order.
func (in interop) drive(t *testing.T, client, mode string, order clientOrder) clientReport {
	t.Helper()
	input, err := json.Marshal(order)
	check.NoError(t, err)
	output := in.runs(t, bytes.NewReader(input), interopFile(t, "clients/"+client+".mjs"), mode)
	var report clientReport
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%s: %v\n%s", client, err, output)
	}
	return report
}

// A gatewayClient is a client, and the revision that it comes to with the gateway; empty where it does not say.
type gatewayClient struct {
	name, script, mode, protocol string
}

var gatewayClients = []gatewayClient{
	{"sdk-v1", "sdk-v1", "http", "2025-11-25"},
	{"sdk-v2-legacy", "sdk-v2", "legacy", "2025-11-25"},
	{"sdk-v2-auto", "sdk-v2", "auto", "2026-07-28"},
	{"langchain", "langchain", "http", ""},
}

// sseClients come over the transport of 2024, at the endpoint of all servers.
var sseClients = []gatewayClient{{"sdk-v1-sse", "sdk-v1", "sse", ""}, {"langchain-sse", "langchain", "sse", ""}}

// runs runs a Node program to its end and returns its standard output. It must end well.
func (in interop) runs(t *testing.T, input io.Reader, args ...string) []byte {
	t.Helper()
	output, stderr, err := in.runNode(t, input, args...)
	if err != nil {
		t.Fatalf("%q: %v\n%s\n%s", args, err, stderr, output)
	}
	return output
}

// runNode runs a Node program to its end, in a home of its own.
func (in interop) runNode(t *testing.T, input io.Reader, args ...string) (output []byte, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, in.node, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = input, &said, time.Second
	output, err = cmd.Output()
	return output, said.String(), err
}

// clientsGateway is a gateway in front of the four servers, each with a scribe.
func (in interop) clientsGateway(t *testing.T) (g *served, root string, journals map[string]string) {
	t.Helper()
	root = clitest.Folder(t, "boiler.txt", boiler)
	kept := t.TempDir()
	args := map[string][]string{"filesystem": {root}}
	more := map[string]string{"memory": memoryIn(kept)}
	journals = make(map[string]string)
	var config, allowed bytes.Buffer
	config.WriteString("version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nservers:\n")
	for i, s := range clientServers {
		journals[s.name] = filepath.Join(kept, s.name+".journal")
		fmt.Fprintf(&config, "  %s: %s\n", s.name, in.scribed(t, journals[s.name], s.name, more[s.name], args[s.name]...))
		if i > 0 {
			allowed.WriteString(", ")
		}
		fmt.Fprintf(&allowed, `%q: ["%s"]`, s.name, strings.Join(strings.Fields(s.allowed), `", "`))
	}
	dir := clitest.Folder(t, "pgfsm.yaml", config.String(), "allowlist.json", "{"+allowed.String()+"}")
	return serve(t, dir), root, journals
}

// patientServer gives a server more time than it needs on a machine with much else to do, and less than its client waits.
const patientServer = ", timeout: 50s, connect_timeout: 50s"

// program is where a program of the tests is.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	check.NoError(t, err)
	return path
}

// scribed is the configuration of a server behind a scribe.
func (in interop) scribed(t *testing.T, journal, server, more string, args ...string) string {
	t.Helper()
	scribe := program(t, "scribe")
	args = append([]string{journal, in.node, in.script("@modelcontextprotocol/server-" + server)}, args...)
	words, err := json.Marshal(args)
	check.NoError(t, err)
	return fmt.Sprintf("{type: stdio, command: %q, args: %s%s%s}", scribe, words, patientServer, more)
}

// TestGatewayClients: what is allowed works, with clients that nobody changed; what is not is not listed, and is refused
// when it is called anyway, with a result that says why; and no tools/call reaches a server that the ledger does not have.
func TestGatewayClients(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	g, root, journals := in.clientsGateway(t)
	made := 0 // calls that are allowed
	for _, c := range gatewayClients {
		t.Run(c.name, func(t *testing.T) {
			t.Run("all", func(t *testing.T) { made += in.clientDoes(t, c, g.base+"/mcp", root, "") })
			for _, s := range clientServers {
				t.Run(s.name, func(t *testing.T) { made += in.clientDoes(t, c, g.base+"/servers/"+s.name+"/mcp", root, s.name) })
			}
		})
	}
	for _, c := range sseClients {
		t.Run(c.name, func(t *testing.T) { made += in.clientDoes(t, c, g.base+"/sse", root, "") })
	}
	for _, era := range []string{"legacy", "auto"} {
		t.Run("inspector-"+era, func(t *testing.T) { made += in.inspectorDoes(t, g.base+"/mcp", era) })
	}
	g.stop(t, exitYes)
	sameCalls(t, filepath.Join(g.dir, "pgfsm.db"), journals, made)
}

// clientDoes has a client list the tools of an endpoint and make every call there: of one server under its own names, or
// of all under joined names. It returns how many calls it made that are allowed.
func (in interop) clientDoes(t *testing.T, c gatewayClient, url, root, server string) (made int) {
	t.Helper()
	var calls []gatewayCall
	order, want := clientOrder{URL: url}, []string(nil)
	for _, s := range clientServers {
		for tool := range strings.FieldsSeq(s.allowed) {
			if server == "" || server == s.name {
				want = append(want, joined(server, s.name, tool))
			}
		}
	}
	for _, call := range slices.Concat(allowedCalls, refusedCalls()) {
		if server == "" || server == call.server {
			calls = append(calls, call)
			order.Calls = append(order.Calls, clientCall{Name: joined(server, call.server, call.tool),
				Arguments: jsontext.Value(strings.ReplaceAll(call.args, "ROOT", root))})
		}
	}
	report := in.drive(t, c.script, c.mode, order)
	slices.Sort(want)
	slices.Sort(report.Tools)
	if d := cmp.Diff(want, report.Tools); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	if c.protocol != "" && report.Protocol != c.protocol {
		t.Errorf("revision = %q, want %q", report.Protocol, c.protocol)
	}
	if len(report.Answers) != len(calls) {
		t.Fatalf("%d answers to %d calls", len(report.Answers), len(calls))
	}
	for i, call := range calls {
		got := report.Answers[i]
		right := !got.IsError && strings.Contains(got.Text, call.text)
		if call.code == "" {
			made++
		} else {
			right = got.IsError && got.Code == call.code
			if c.script == "langchain" && slices.Contains(report.Tools, order.Calls[i].Name) {
				right = strings.Contains(got.Fault, call.code) // LangChain throws what its tool reports as an error
			}
		}
		if !right || got.Fault != "" && call.code == "" {
			t.Errorf("%s %s = %+v, want text %q, code %q", order.Calls[i].Name, order.Calls[i].Arguments, got, call.text, call.code)
		}
	}
	return made
}

// joined is a tool's name at the endpoint of one server, or of all.
func joined(endpoint, server, tool string) string {
	if endpoint != "" {
		return tool
	}
	return server + "__" + tool
}

// inspect runs the inspector's command line.
func (in interop) inspect(t *testing.T, url, era string, args ...string) (clitest.Result, error) {
	t.Helper()
	program := filepath.Join(in.modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	args = append([]string{program, "--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json", "-q"}, args...)
	output, stderr, err := in.runNode(t, nil, args...)
	return clitest.Result{Stdout: string(output), Stderr: stderr}, err
}

// inspectorDoes has the inspector's command line list the tools and make a few calls. It does not send a call of a tool
// that is not listed. It returns how many calls it made that are allowed.
func (in interop) inspectorDoes(t *testing.T, url, era string) (made int) {
	t.Helper()
	list, err := in.inspect(t, url, era, "--method", "tools/list")
	if last := list.Member("/result/tools/10/name"); err != nil || last != "sequential-thinking__sequentialthinking" {
		t.Errorf("the last tool is %q, %v, want that of sequential-thinking\n%s%s", last, err, list.Stdout, list.Stderr)
	}
	for _, c := range []struct{ tool, args, at, want, stderr string }{
		{"everything__echo", `{"message": "hi"}`, "/result/content/0/text", "Echo: hi", ""},
		{"memory__read_graph", `{}`, "/result/isError", "", ""},
		{"everything__echo", `{"message": "hi", "more": 1}`, "/result/_meta/io.pgfsm~1decision/code", "arguments_invalid", "tool_is_error"},
		{"everything__get-env", `{}`, "/result", "", "tool_not_found"},
	} {
		got, err := in.inspect(t, url, era, "--method", "tools/call", "--tool-name", c.tool, "--tool-args-json", c.args)
		if (err == nil) != (c.stderr == "") || got.Member(c.at) != c.want || !strings.Contains(got.Stderr, c.stderr) {
			t.Errorf("%s %s: %v, want %s = %q\n%s%s", c.tool, c.args, err, c.at, c.want, got.Stdout, got.Stderr)
		}
		if c.stderr == "" {
			made++
		}
	}
	return made
}

// sameCalls holds the calls that reached the servers to those that the ledger says were sent: all that were decided, and
// no other.
func sameCalls(t *testing.T, path string, journals map[string]string, made int) {
	t.Helper()
	var reached []string
	for _, s := range clientServers {
		reached = append(reached, journalCalls(t, s.name, journals[s.name])...)
	}
	store, err := sqlite.OpenReadOnly(path)
	check.NoError(t, err)
	defer store.Close()
	var sent []string
	refused := 0
	err = store.View(t.Context(), func(r ledger.Reader) error {
		for q, err := range r.Runs(ledger.Filter{}) {
			switch {
			case err != nil:
				return err
			case q.Sent != "":
				sent = append(sent, q.Server+" "+q.Tool+" "+q.Args)
				if q.Status != ledger.Executed {
					t.Errorf("%s %s %s was sent and is %s, want %s", q.Server, q.Tool, q.Args, q.Status, ledger.Executed)
				}
			default:
				refused++
			}
		}
		return nil
	})
	check.NoError(t, err)
	slices.Sort(reached)
	slices.Sort(sent)
	if d := cmp.Diff(sent, reached); d != "" {
		t.Errorf("calls (-sent, as the ledger says +reached a server):\n%s", d)
	}
	if len(sent) != made || refused == 0 {
		t.Errorf("%d calls were sent and %d refused, want %d sent", len(sent), refused, made)
	}
}

// journalCalls are the tools/call that reached a server, each as "server tool arguments".
func journalCalls(t *testing.T, server, journal string) (calls []string) {
	t.Helper()
	text, err := os.ReadFile(journal)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a server that was not asked has none
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m struct {
			Method string `json:"method"`
			Params struct {
				Name      string         `json:"name"`
				Arguments jsontext.Value `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s was sent %q: %v", server, line, err)
		}
		if m.Method == "tools/call" {
			args, err := canonical.JSON(m.Params.Arguments)
			check.NoError(t, err)
			calls = append(calls, server+" "+m.Params.Name+" "+string(args))
		}
	}
	return calls
}
