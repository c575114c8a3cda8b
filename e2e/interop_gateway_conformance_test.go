package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/golden"
)

// The conformance suite of the Model Context Protocol judges the SDK's own conformance server, directly and through the
// gateway. Of every check it must say the same both times: a total would hide that a scenario that ends early makes
// fewer checks.

// revisions are those that the suite has frozen requirements of, and what it says of the SDK's server. What it fails are
// scenarios of the tasks extension, which it has no tools for and which no requirement names.
var revisions = []struct {
	name      string
	stateless string // how the SDK's HTTP handler serves this revision: it serves either this one or the older ones
	passed    int
	failed    int
}{
	{"2025-11-25", "false", 82, 0},
	{"2026-07-28", "true", 165, 30},
}

// everythingServerTools are the tools of the SDK's conformance server, and the one that it adds and removes at run time.
const everythingServerTools = `["test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource",
"test_multiple_content_types", "test_tool_with_logging", "test_tool_with_progress", "test_error_handling", "test_sampling",
"test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", "json_schema_2020_12_tool",
"test_reconnection", "test_x_mcp_header", "test_missing_capability", "test_streaming_elicitation", "test_logging_tool",
"test_trigger_tool_change", "test_trigger_prompt_change", "test_input_required_result_elicitation",
"test_input_required_result_sampling", "test_input_required_result_list_roots", "test_input_required_result_request_state",
"test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
"test_input_required_result_tampered_state", "test_input_required_result_capabilities", "__transient_tool_for_list_changed"]`

// conformanceTime bounds one run of the suite, which takes a few seconds on an idle machine.
const conformanceTime = 4 * time.Minute

// sdkProgram builds one of the SDK's conformance programs, from the version of the SDK that the command is built with.
func sdkProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/"+name)
	build.Env = append(os.Environ(), "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, output)
	}
	return path
}

// dated is what the suite puts behind the name of a scenario to name the folder of its results.
var dated = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-0-9]+Z$`)

// conformance lets the suite judge the server at a URL.
func (in interop) conformance(t *testing.T, tell func(verdict string) bool, url, revision string) (verdicts []string) {
	t.Helper()
	return in.judged(t, tell, "server", "--url", url, "--requirements", revision)
}

// judged runs the suite. Each verdict is "scenario check STATUS"; they are sorted, and one that was given twice is there
// twice. What the suite says of those that tell chooses is logged.
func (in interop) judged(t *testing.T, tell func(verdict string) bool, args ...string) (verdicts []string) {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), conformanceTime)
	defer cancel()
	args = append([]string{in.script("@modelcontextprotocol/conformance")}, args...)
	suite := exec.CommandContext(ctx, in.node, append(args, "--timeout", "60000", "-o", dir)...)
	suite.Dir, suite.WaitDelay = dir, time.Second
	output, _ := suite.CombinedOutput() // the exit code says whether all is well: the verdicts say what is not
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	below, _ := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json")) // of a scenario with a slash in its name
	files = append(files, below...)
	if len(files) == 0 {
		t.Fatalf("the suite left no results\n%s", output)
	}
	for _, file := range files {
		folder := filepath.Dir(file)[len(dir)+1:]
		scenario := strings.TrimPrefix(dated.ReplaceAllString(folder, ""), "server-")
		text := clitest.Read(t, file)
		var checks []struct {
			ID           string `json:"id"`
			Status       string `json:"status"`
			ErrorMessage string `json:"errorMessage"`
		}
		if err := json.Unmarshal([]byte(text), &checks); err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, c := range checks {
			verdict := scenario + " " + c.ID + " " + c.Status
			verdicts = append(verdicts, verdict)
			if c.ErrorMessage != "" && tell(verdict) {
				t.Logf("%s: %s", verdict, c.ErrorMessage)
			}
		}
	}
	slices.Sort(verdicts)
	return verdicts
}

// goldenVerdicts are what the suite says directly: of the SDK's server by a revision, or of its client in a scenario.
func goldenVerdicts(t *testing.T, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(clitest.Read(t, goldenPath(name)), "\n"), "\n")
}

func goldenPath(name string) string {
	return filepath.Join(repository, "interop", "fixtures", "conformance-"+name+".txt")
}

// TestGatewayConformanceBaseline: the golden files are what the suite says of the SDK's server and client without a gateway.
func TestGatewayConformanceBaseline(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	server := sdkProgram(t, "everything-server")
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			isGolden(t, r.name, in.conformance(t, notPassed, in.everythingServer(t, server, r.stateless), r.name), r.passed, r.failed)
		})
	}
	client := sdkProgram(t, "everything-client")
	for _, s := range clientScenarios {
		t.Run(s.golden(), func(t *testing.T) {
			isGolden(t, s.golden(), in.judgedClient(t, client, s), s.passed, 0)
		})
	}
}

// isGolden holds verdicts to those of a golden file, or writes that, and counts what a total of the suite counts.
func isGolden(t *testing.T, name string, got []string, passed, failed int) {
	t.Helper()
	golden.File(t, goldenPath(name), strings.Join(got, "\n")+"\n")
	p, f := 0, 0
	for _, v := range got {
		switch {
		case strings.HasSuffix(v, " SUCCESS"):
			p++
		case strings.HasSuffix(v, " FAILURE"):
			f++
		}
	}
	if p != passed || f != failed {
		t.Errorf("%d checks passed and %d failed, want %d and %d", p, f, passed, failed)
	}
}

// everythingServer starts the SDK's conformance server over HTTP and returns its URL.
func (in interop) everythingServer(t *testing.T, program, stateless string) string {
	t.Helper()
	port := freePort(t)
	listenProgram(t, port, nil, program, fmt.Sprintf("-http=127.0.0.1:%d", port), "-stateless="+stateless)
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// TestGatewayConformance: through the gateway the suite says of every check what it says directly: both sets of
// requirements, of one process at one URL, whatever the upstream speaks. At the endpoint of all servers it says the same of everything
// that does not depend on a name that the endpoint gives otherwise.
func TestGatewayConformance(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	program := sdkProgram(t, "everything-server")
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		g := conformanceGateway(t, map[string]string{"es": fmt.Sprintf("{type: stdio, command: %q, sessions: session, expose: all%s}", program, patientServer)}, "es")
		var known []string
		for _, r := range revisions {
			known = append(known, goldenVerdicts(t, r.name)...)
			t.Run(r.name, func(t *testing.T) { in.sameVerdicts(t, g.base+"/servers/es/mcp", r.name, keepAll) })
			t.Run(r.name+"-of-all", func(t *testing.T) { in.sameVerdicts(t, g.base+"/mcp", r.name, notLeftOut) })
		}
		g.stop(t, exitYes)
		for name := range leftOut { // in any order
			if !slices.ContainsFunc(known, func(v string) bool { return strings.HasPrefix(v, name+" ") }) {
				t.Errorf("%s is left out, and the suite has no such scenario or check", name)
			}
		}
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		servers := make(map[string]string)
		var names []string
		for _, r := range revisions {
			names = append(names, "es"+r.name)
			servers["es"+r.name] = fmt.Sprintf("{type: http, url: %q, sessions: session, expose: all%s}", in.everythingServer(t, program, r.stateless), patientServer)
		}
		g := conformanceGateway(t, servers, names...)
		for _, r := range revisions {
			t.Run(r.name, func(t *testing.T) { in.sameVerdicts(t, g.base+"/servers/es"+r.name+"/mcp", r.name, exceptPolling) })
		}
		g.stop(t, exitYes)
	})
}

// conformanceGateway is a gateway in front of servers that are all the SDK's conformance server, everything exposed.
func conformanceGateway(t *testing.T, servers map[string]string, names ...string) *served {
	t.Helper()
	var config, allowed bytes.Buffer
	config.WriteString("version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nservers:\n")
	for i, name := range names {
		fmt.Fprintf(&config, "  %q: %s\n", name, servers[name])
		if i > 0 {
			allowed.WriteString(", ")
		}
		fmt.Fprintf(&allowed, "%q: %s", name, everythingServerTools)
	}
	dir := clitest.Folder(t, "pgfsm.yaml", config.String(), "allowlist.json", "{"+allowed.String()+"}")
	return serve(t, dir)
}

// better are verdicts that the SDK's server does not get, and the gateway does, with the reason. There are none the other
// way round.
var better = map[string]string{
	"server-sse-polling server-sse-priming-event WARNING":                          "streams of the gateway begin with an event that has an id",
	"tasks-capability-negotiation tasks-extension-advertised FAILURE":              "the gateway has tasks of its own, for held calls",
	"tasks-capability-negotiation sep-2663-tasks-methods-non-declaring FAILURE":    "so it refuses them to those who do not say that they know tasks",
	"tasks-dispatch-and-envelope sep-2663-tasks-get-invalid-task-id-32602 FAILURE": "and says of an unknown one what it should",
}

// throughGateway are the verdicts that the gateway must get where the SDK's server gets these, without what the suite only
// notes: events of a stream, of which a gateway may send more.
func throughGateway(verdicts []string) (list []string) {
	for _, v := range verdicts {
		if better[v] != "" {
			v = v[:strings.LastIndexByte(v, ' ')] + " SUCCESS"
		}
		if !strings.HasSuffix(v, " INFO") {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list
}

// sameVerdicts holds what the suite says of a URL to what it says of the SDK's server, as far as both are kept.
func (in interop) sameVerdicts(t *testing.T, url, revision string, keep func([]string) []string) {
	t.Helper()
	want := keep(throughGateway(goldenVerdicts(t, revision)))
	for try := 1; ; try++ {
		asked := func(v string) bool { return !strings.HasSuffix(v, " INFO") && len(keep([]string{v})) > 0 }
		got := in.conformance(t, func(v string) bool { return asked(v) && !slices.Contains(want, v) }, url, revision)
		d := cmp.Diff(want, slices.DeleteFunc(got, func(v string) bool { return !asked(v) }))
		if d == "" {
			return
		}
		if try == conformanceTries {
			t.Fatalf("verdicts (-direct +through the gateway):\n%s", d)
		}
		t.Logf("once more, because of (-direct +through the gateway):\n%s", d)
	}
}

// conformanceTries is how often the suite is asked at most: it gives some answers half a second, and no option gives more.
const conformanceTries = 2

func keepAll(verdicts []string) []string { return verdicts }

// exceptPolling leaves out a scenario whose call nobody can have answered over HTTP: the SDK's server ends the stream of the
// call without having named an event to ask for the rest by. Directly the suite does not ask; the gateway does not call
// again, and answers that it does not know what became of the call.
func exceptPolling(verdicts []string) []string {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v string) bool { return strings.HasPrefix(v, "server-sse-polling ") })
}

func notPassed(verdict string) bool { return !strings.HasSuffix(verdict, " SUCCESS") }
