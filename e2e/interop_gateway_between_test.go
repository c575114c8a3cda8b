package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// betweenTools are all tools of the suite's own servers.
const betweenTools = `{"suite": [
"add_numbers", "test_client_elicitation_defaults", "test_reconnection", "json_schema_echo",
"json_schema_2020_12_tool", "test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type",
"test_mrtr_unrelated", "test_headers", "my-hyphenated-tool", "test_custom_headers", "test_custom_headers_null",
"valid_tool", "invalid_array_header", "invalid_colon_in_name", "invalid_control_char_name",
"invalid_duplicate_diff_case", "invalid_duplicate_same_case", "invalid_empty_header", "invalid_non_ascii_name",
"invalid_null_header", "invalid_number_header", "invalid_object_header", "invalid_space_in_name"]}`

// between stands in for an MCP client under test: the suite gives it the URL of a server of its own as the last argument.
// It puts a gateway in front of that server, runs a client against the gateway, and ends as the client does. Its first
// argument is the newest revision that the client is let speak, its second the client.
func between() {
	if err := betweenRuns(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func betweenRuns(revision, client, server string) (err error) {
	dir, err := os.MkdirTemp("", "between")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "pgfsm.yaml")
	text := fmt.Sprintf("version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nservers:\n  suite: {type: http, url: %q, sessions: session, expose: all}\n", server)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "allowlist.json"), []byte(betweenTools), 0o600); err != nil {
		return err
	}
	gateway := exec.Command("pgfsm", "serve", "-c", config, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	gateway.Stderr = os.Stderr
	said, err := gateway.StdoutPipe()
	if err != nil {
		return err
	}
	if err := gateway.Start(); err != nil {
		return err
	}
	defer func() {
		_ = gateway.Process.Signal(syscall.SIGTERM)
		err = errors.Join(err, gateway.Wait())
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "mcp "); ok {
			old := httptest.NewServer(noNewerThan(revision, strings.TrimSuffix(at, "/mcp")))
			defer old.Close()
			cmd := exec.Command(client, old.URL+"/servers/suite/mcp")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			return cmd.Run()
		}
	}
	return fmt.Errorf("the gateway named no address: %w", lines.Err())
}

// noNewerThan passes on what comes in a revision, or an older one. The gateway speaks all of them, and the SDK's client the
// newest that it finds: this makes it the client that the scenario is about.
func noNewerThan(revision, to string) http.Handler {
	target, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	through := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") > revision {
			http.Error(w, "an older server", http.StatusBadRequest)
			return
		}
		through.ServeHTTP(w, r)
	})
}
