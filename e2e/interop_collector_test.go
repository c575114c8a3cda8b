package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// collectorConfig has OpenTelemetry's collector print every span that it accepts.
const collectorConfig = `yaml:{receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}, exporters: {debug: {verbosity: detailed}},
service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}`

// TestInteropCollector: OpenTelemetry's collector accepts the spans of a call that is held and made. It is built from interop/otelcol.
func TestInteropCollector(t *testing.T) {
	matrix(t)
	program := filepath.Join(t.TempDir(), "otelcol")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = interopFile(t, "otelcol")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	collector := exec.Command(program, "--config="+collectorConfig)
	out, err := collector.StderrPipe()
	check.NoError(t, err)
	check.NoError(t, collector.Start())
	t.Cleanup(func() { _ = collector.Process.Kill() })
	said := bufio.NewReader(out)
	address := listens(t, said)

	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	o.dir = gatewayFolder(t, o.u, inOffice+fmt.Sprintf("telemetry: {otlp: {endpoint: \"http://%s\"}}\n", address))
	o.writes(t, "policy.yaml", "version: 1\npolicies:\n  - {id: people, match: {tool: look}, effect: pending, expires: 1h}\n")
	o.served = serve(t, o.dir)
	o.bob, o.ci = makeToken(t, o.config, "approver", "bob"), makeToken(t, o.config, "agent", "ci")
	run := o.held(t, o.agent("/mcp", o.ci), `{"n":1}`)
	o.decide(t, "approve", run, o.bob)
	o.ended(t, run, "executed", "")
	o.stop(t, exitYes)

	check.NoError(t, collector.Process.Signal(os.Interrupt))
	text, err := io.ReadAll(said)
	check.NoError(t, err)
	if err := collector.Wait(); err != nil {
		t.Errorf("the collector ends with %v\n%s", err, text)
	}
	for _, want := range []string{
		"Name           : tools/call look", "Kind           : Server", "Kind           : Client", "service.name: Str(pgfsm)",
		"pgfsm.decision: Str(pending)", "gen_ai.tool.name: Str(look)", "SpanLink #0",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the collector printed no %q\n%s", want, text)
		}
	}
}

// listens returns the address on which the collector says that it listens.
func listens(t *testing.T, said *bufio.Reader) string {
	t.Helper()
	for {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("the collector does not listen: %v", err)
		}
		if _, fields, found := strings.Cut(line, "Starting HTTP server"); found {
			endpoint, _ := clitest.ValueAt([]byte(strings.TrimSpace(fields)), "/endpoint")
			return strings.Trim(string(endpoint), `"`)
		}
	}
}
