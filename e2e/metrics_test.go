package e2e

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

// scraped returns the metrics of a service, as a program on this machine gets them.
func (s *served) scraped(t *testing.T, header http.Header) (status int, kind, text string) {
	t.Helper()
	resp, err := send(t.Context(), http.MethodGet, s.admin+"/metrics", header, "")
	check.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
}

// TestServeMetrics: the metrics count what agents, servers and people did. Labels are bounded, and nothing shows what was called with.
func TestServeMetrics(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	a := o.agent("/mcp", o.ci)
	run := o.held(t, a, `{"n":4711}`)
	_, _, text := o.scraped(t, nil)
	if !strings.Contains(text, "\npgfsm_approvals_pending 1\n") {
		t.Errorf("no call waits:\n%s", text)
	}
	o.decide(t, "approve", run, o.bob)
	o.ended(t, run, "executed", "")
	a.call("echo__secret-tool-4711", `{}`)
	a.call("nowhere-4711", `{}`)
	a.call("echo__burn", `{"n":4711}`)
	a.post(`{"jsonrpc":"2.0","id":9,"method":"methods/of-nobody-4711"}`)
	_, kind, text := o.scraped(t, http.Header{"Accept": {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}})
	if !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("the media type is %q", kind)
	}
	if strings.Contains(text, "4711") {
		t.Errorf("the metrics hold what an agent sent:\n%s", text)
	}
	var got []string
	counts := regexp.MustCompile(`(?m)^((?:pgfsm_(?:calls_total|approvals_pending|indeterminate_total|approval_wait_seconds_count|bundle_info)|mcp_\w+_count).*) (\d+)$`)
	for _, m := range counts.FindAllStringSubmatch(text, -1) {
		got = append(got, regexp.MustCompile(`sha256:[0-9a-f]{64}`).ReplaceAllString(m[1], "BUNDLE")+" "+m[2])
	}
	slices.Sort(got)
	want := []string{
		`mcp_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="execute_tool",gen_ai_tool_name="look",mcp_method_name="tools/call",pgfsm_server="echo"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32601",gen_ai_operation_name="",gen_ai_tool_name="",mcp_method_name="_other",pgfsm_server=""} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32602",gen_ai_operation_name="execute_tool",gen_ai_tool_name="_other",mcp_method_name="tools/call",pgfsm_server="_other"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32602",gen_ai_operation_name="execute_tool",gen_ai_tool_name="_other",mcp_method_name="tools/call",pgfsm_server="echo"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="_other",mcp_method_name="tools/call",pgfsm_server="echo"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_operation_name="execute_tool",gen_ai_tool_name="look",mcp_method_name="tools/call",pgfsm_server="echo"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_operation_name="",gen_ai_tool_name="",mcp_method_name="initialize",pgfsm_server=""} 1`,
		`pgfsm_approval_wait_seconds_count{decision="allow"} 1`,
		`pgfsm_approvals_pending 0`,
		`pgfsm_bundle_info{digest="BUNDLE"} 1`,
		`pgfsm_calls_total{decision="allow",gate=""} 1`,
		`pgfsm_calls_total{decision="deny",gate="allowlist"} 1`,
		`pgfsm_calls_total{decision="deny",gate="schema"} 1`,
		`pgfsm_calls_total{decision="pending",gate="policy"} 1`,
		`pgfsm_indeterminate_total 0`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s\n%s", diff, text)
	}
	if !regexp.MustCompile(`(?m)^pgfsm_ledger_commit_seconds_count [1-9]`).MatchString(text) {
		t.Error("no commit is measured")
	}
}

// TestServeMetricsAreForAuditors: a program on this machine needs no token; what a proxy forwards does.
func TestServeMetricsAreForAuditors(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	auditor := makeToken(t, o.config, "auditor", "monitor")
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for _, tt := range []struct {
		name   string
		header http.Header
		want   int
	}{
		{"this-machine", nil, http.StatusOK},
		{"auditor", bearer(auditor), http.StatusOK},
		{"approver", bearer(o.bob), http.StatusForbidden},
		{"agent", bearer(o.ci), http.StatusForbidden},
		{"unknown-token", bearer("pgfsm_unknown"), http.StatusUnauthorized},
		{"behind-a-proxy", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, http.StatusUnauthorized},
		{"auditor-behind-a-proxy", http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Authorization": {"Bearer " + auditor}}, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, _, text := o.scraped(t, tt.header); status != tt.want {
				t.Errorf("status %d, want %d: %s", status, tt.want, text)
			}
		})
	}
}
