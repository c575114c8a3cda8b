package telemetry_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/telemetry"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
)

// full returns metrics with a value of each.
func full(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m := telemetry.New()
	m.Served(telemetry.Operation{Method: "tools/list", Took: time.Second})
	m.Called(telemetry.Operation{Method: "tools/call", Server: "s", Tool: "t", ErrorType: "tool_error", Took: time.Second})
	m.Decided("deny", "policy")
	m.Indeterminate()
	m.Reported("rewritten")
	m.Limited("tool")
	m.Connection("made")
	m.Waited(time.Hour, "allow")
	m.Committed(time.Millisecond)
	m.Bundle(func() string { return "sha256:1" })
	m.Pending(func() (int, error) { return 3, nil })
	m.Prunes(func() (int, int, error) { return 2, 1, nil })
	m.ServerSessions(func() (open, most int) { return 2, 64 })
	return m
}

func written(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNames: the names, units and attributes are those of the conventions.
func TestNames(t *testing.T) {
	text := written(t, full(t))
	for _, want := range []string{
		"# TYPE mcp_server_operation_duration_seconds histogram",
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_operation_name="",gen_ai_tool_name="",mcp_method_name="tools/list",pgfsm_server="",le="0.01"} 0`,
		`mcp_server_operation_duration_seconds_bucket{error_type="",gen_ai_operation_name="",gen_ai_tool_name="",mcp_method_name="tools/list",pgfsm_server="",le="300"} 1`,
		"# TYPE mcp_client_operation_duration_seconds histogram",
		`mcp_client_operation_duration_seconds_sum{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call",pgfsm_server="s"} 1`,
		"# TYPE pgfsm_calls_total counter",
		`pgfsm_calls_total{decision="deny",gate="policy"} 1`,
		"pgfsm_indeterminate_total 1", `pgfsm_ledger_prunes{kind="retention"} 2`, `pgfsm_ledger_prunes{kind="erasure"} 1`,
		`pgfsm_reported_total{end="rewritten"} 1`,
		`pgfsm_limited_total{by="tool"} 1`,
		`pgfsm_connections_changed_total{change="made"} 1`,
		"pgfsm_approvals_pending 3",
		"pgfsm_server_sessions 2",
		"pgfsm_server_sessions_limit 64",
		`pgfsm_approval_wait_seconds_sum{decision="allow"} 3600`,
		"pgfsm_ledger_commit_seconds_sum 0.001",
		`pgfsm_bundle_info{digest="sha256:1"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

// TestUnreadable: a value that cannot be read is missing; the others are there.
func TestUnreadable(t *testing.T) {
	m := telemetry.New()
	m.Pending(func() (int, error) { return 0, errors.New("the ledger is away") })
	m.Decided("allow", "")
	if text := written(t, m); strings.Contains(text, "pgfsm_approvals_pending") || !strings.Contains(text, "pgfsm_calls_total") {
		t.Errorf("metrics:\n%s", text)
	}
}

// operate has the pages and files for operators.
const operate = "../../docs/operate"

// TestDocsNameTheMetrics: the page, the alerts and the dashboard name metrics that there are, and the page names all.
func TestDocsNameTheMetrics(t *testing.T) {
	var families []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(written(t, full(t)), -1) {
		families = append(families, m[1])
	}
	for _, file := range []string{"monitoring.md", "alerts.yaml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(operate, file))
		check.NoError(t, err)
		for _, name := range regexp.MustCompile(`\b(?:mcp_(?:server|client)|pgfsm)_[a-z_]+_(?:total|seconds(?:_bucket|_count)?|pending|info)\b`).FindAllString(string(text), -1) {
			if !slices.Contains(families, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")) {
				t.Errorf("%s names %s, which is no metric", file, name)
			}
		}
		for _, name := range families {
			if !strings.Contains(string(text), name) && file != "alerts.yaml" {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}

// TestAlerts: the alert rules fire when they should, and only then. The page says what to do about each.
func TestAlerts(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(operate, "alerts.yaml"))
	check.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(operate, "monitoring.md"))
	check.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(page), "| `"+m[1]+"` |") {
			t.Errorf("monitoring.md does not say what to do about %s", m[1])
		}
	}
	promtool := tool.Path(t, "prometheus", "promtool")
	if out, err := exec.Command(promtool, "test", "rules", "testdata/alerts_test.yaml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
