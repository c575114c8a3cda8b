package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A modelScript is what the model says to one question.
type modelScript struct{ plan, summary string }

// A siege is the world of the attacks: one endpoint that lies, and one server that writes down what reaches it.
type siege struct {
	model   *mcptest.Model
	witness *witness
	down    string

	mu      sync.Mutex
	scripts map[string]modelScript // by question
	asked   map[string]int         // by purpose and question
	strange []string
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	s := &siege{
		witness: &witness{tools: map[string]string{}, calls: map[string][]callMade{}},
		down:    closedURL(), scripts: map[string]modelScript{}, asked: map[string]int{},
	}
	servers := httptest.NewServer(s.witness)
	s.witness.url = servers.URL
	t.Cleanup(func() {
		servers.Close()
		for _, f := range slices.Concat(s.strange, s.witness.strange) {
			t.Errorf("what no run should do: %.500s", f)
		}
	})
	s.model = mcptest.NewModel(t, s.answer)
	return s
}

// A post is one group of runs: a configuration, a folder of traces, and addresses of its own, so that what comes there
// is of these runs, which are made one after the other.
type post struct {
	*siege
	name, dir string
	runs      int
	seen      int // calls that were told of; one that comes late is told with the next run
	output    strings.Builder
}

// The secrets that the model and the servers of a siege get.
const (
	siegeKey    = "model-k3y/+=4711-of-the-siege"
	siegeSecret = "client-s3cret/+=4711-of-the-siege"
	siegeToken  = "access-t0ken/+4711-of-the-siege=="
)

// post makes a group whose server lists tools.
func (s *siege) post(t *testing.T, name, tools, summary string) *post {
	t.Helper()
	s.witness.list("/"+name+"/files", tools)
	s.witness.list("/"+name+"/other", otherTools)
	auth := `{client_credentials: {token_url: "` + s.witness.url + `/token", client_id: pgfsm, client_secret: "${file:secret}"}}`
	return &post{siege: s, name: name, dir: cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  files: {type: http, url: "%[1]s/%[2]s/files", auth: %[6]s}
  other: {type: http, url: "%[1]s/%[2]s/other", auth: %[6]s}
  down: {type: http, url: %[3]q}
allowlist: allowlist.json
planner: {mode: llm, llm: {base_url: %[4]q, model: m, api_key: "${file:key}"}}
input: {defaults: false}
summary: {mode: %[5]s}
`, s.witness.url, name, s.down, s.model.URL+"/v1", summary, auth), "allowlist.json", attackAllowlist, "key", siegeKey, "secret", siegeSecret)}
}

// run asks one question, to which the model says what the script says.
func (p *post) run(t *testing.T, name string, says modelScript) observation {
	t.Helper()
	p.runs++
	question := p.name + " " + name
	p.says(t, question, says)
	o := observation{Result: command(t.Context(), nil, "run", "--planner", "llm", "--json",
		"-c", filepath.Join(p.dir, "pgfsm.yaml"), question)}
	p.output.WriteString(o.Stdout + o.Stderr)
	came := p.witness.came(p.name)
	o.calls, p.seen = came[p.seen:], len(came)
	o.plans, o.summaries = p.received("plan", question), p.received("summary", question)
	return o
}

// replay executes all traces of the group again. No run may have printed or recorded a secret.
func (p *post) replay(t *testing.T) {
	t.Helper()
	if n := len(p.witness.came(p.name)); n != p.seen {
		t.Errorf("%s: %d calls came after the last run", p.name, n-p.seen)
	}
	found, err := filepath.Glob(filepath.Join(p.dir, "traces", "*"))
	if err != nil || len(found) != p.runs {
		t.Errorf("%s: %d files in the traces folder, want one for each of %d runs (%v)", p.name, len(found), p.runs, err)
	}
	r := command(t.Context(), nil, "replay", "--json", filepath.Join(p.dir, "traces"))
	r.Want(t, exitYes, "/ok", "true")
	if r.Member(fmt.Sprintf("/traces/%d/ok", p.runs-1)) != "true" || r.Member(fmt.Sprintf("/traces/%d", p.runs)) != "" {
		t.Errorf("%s: not exactly %d traces were replayed", p.name, p.runs)
	}
	p.output.WriteString(r.Stdout + r.Stderr)
	for _, path := range found {
		p.output.WriteString(cli.Read(t, path))
	}
	cli.WantNone(t, p.name, p.output.String(), siegeKey, siegeSecret, siegeToken)
}

// spoilFile replaces the first place of a text in a file.
func spoilFile(t *testing.T, path, was, is string) {
	t.Helper()
	text := cli.Read(t, path)
	if !strings.Contains(text, was) {
		t.Fatalf("%s does not hold %q", path, was)
	}
	cli.Write(t, path, strings.Replace(text, was, is, 1))
}

// says has the model answer a question as a script says.
func (s *siege) says(t *testing.T, question string, says modelScript) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.scripts[question]; twice {
		t.Fatalf("the question %q is asked twice", question)
	}
	s.scripts[question] = says
}

// answer is that of the model, whose response is always in order; what it says in it need not be.
func (s *siege) answer(_ *mcptest.Model, w http.ResponseWriter, _ *http.Request, q mcptest.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	says, known := s.scripts[q.User]
	content := says.plan
	if q.Kind == "summary" {
		content = says.summary
	}
	if !known {
		s.strange = append(s.strange, "an unknown question: "+q.Body)
	}
	if unfit := unfitPrompt(q.Kind, q.System); unfit != "" {
		s.strange = append(s.strange, fmt.Sprintf("the prompt shows %s: %s", unfit, q.Body))
	}
	s.asked[q.Kind+" "+q.User]++
	if q.Header.Get("Authorization") != "Bearer "+siegeKey {
		s.strange = append(s.strange, "a request without the model's key")
	}
	mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(content))
}

func (s *siege) received(purpose, question string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[purpose+" "+question]
}

// unfitPrompt says what a prompt shows of the servers and should not, or does not show and should: the planner is told
// of the effective allowlist, so that an attacker has to guess the rest.
func unfitPrompt(purpose, prompt string) string {
	if purpose == "plan" && !strings.Contains(prompt, `"tool":"fetch"`) {
		return "no tool"
	}
	for _, name := range []string{"delete_file", "look_all", "loo", "LOOK", "look ", "l\u043e\u043ek", "cafe\u0301",
		"files__look",
		"twice", "drifted", "broken", "absent"} {
		if strings.Contains(prompt, `"tool":"`+name+`"`) {
			return "the tool " + name
		}
	}
	if strings.Contains(prompt, "instructions-of-the-server") {
		return "a server's instructions"
	}
	return ""
}

// A witness is every server of the attacks over streamable HTTP, told apart by path: /group/server. It writes down each
// tools/call before it answers.
type witness struct {
	url     string
	mu      sync.Mutex
	tools   map[string]string     // the result of tools/list, by path
	calls   map[string][]callMade // by group
	strange []string
}

func (w *witness) list(path, tools string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tools[path] = tools
}

// came lists the calls that reached the servers of a group.
func (w *witness) came(group string) []callMade {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[group])
}

const witnessHello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
	`"instructions":"instructions-of-the-server","serverInfo":{"name":"witness","version":"1"}}`

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/token" {
		mcptest.SayJSON(out, http.StatusOK, `{"access_token":"`+siegeToken+`","token_type":"Bearer"}`)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+siegeToken {
		w.note("a request without the access token")
	}
	var message map[string]jsontext.Value // numbers keep their literal
	if err := json.Unmarshal(body, &message); err != nil {
		w.note("not strict JSON: " + string(body))
	}
	method := strings.Trim(string(message["method"]), `"`)
	w.mu.Lock()
	tools := w.tools[r.URL.Path]
	w.mu.Unlock()
	var result string
	switch method {
	case "initialize":
		result = witnessHello
	case "tools/list":
		result = tools
	case "tools/call":
		w.record(r.URL.Path, body)
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"structuredContent":%s}`, richResult)
	case "notifications/initialized", "notifications/cancelled", "ping":
	default:
		if method != "server/discover" { // the newest revision's greeting, which this server does not know
			w.note(fmt.Sprintf("%s of %s with %s", method, r.URL.Path, slices.Sorted(maps.Keys(message))))
		}
	}
	id, err := cli.At(body, "/id")
	if err != nil {
		out.WriteHeader(http.StatusAccepted)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if result == "" {
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, id)
		return
	}
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// record writes a call down with its exact params bytes.
func (w *witness) record(path string, body []byte) {
	group, server := filepath.Split(path)
	params, _ := cli.At(body, "/params")
	w.mu.Lock()
	defer w.mu.Unlock()
	group = strings.Trim(group, "/")
	w.calls[group] = append(w.calls[group], callMade{server, string(params)})
}

func (w *witness) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strange = append(w.strange, what)
}
