package e2e

import (
	"encoding/base64"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
)

// TestTokensStayOut: no token of a provider is in anything that is written, however it is encoded.
func TestTokensStayOut(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, peopleHold)
	robot, person := o.robot("ci"), o.person("carol")
	a := o.agent("/mcp", robot)
	run := o.held(t, a, `{"n":1}`)
	o.decide(t, "approve", run, person)
	a.becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
	tokens := []string{robot, person, o.robot("ci", "aud", "approvals"), o.robot("ci", "cnf", map[string]any{"jkt": "x"}), o.robot("ci", "exp", 1), robot + "x"}
	for _, token := range tokens[2:] { // refused ones
		resp, err := send(t.Context(), http.MethodPost, o.mcp, http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}},
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		check.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a token that is not valid is answered %s", resp.Status)
		}
		command(t.Context(), map[string]string{tokenVariable: token}, "approvals", "approve", "-c", o.config, run, "--digest", o.bindingOf(t, run, person)).Want(t, exitCould)
	}
	written := o.stderr.String()
	if want := `"a token was refused at the gateway" reason="the token is for another audience"`; !strings.Contains(written, want) {
		t.Errorf("the log does not say %s:\n%s", want, written)
	}
	var secrets []string
	for _, token := range tokens {
		secrets = append(secrets, strings.Split(token, ".")[1:]...)
	}
	o.staysOut(t, secrets...)
}

// staysOut lets the gateway crash, and wants no secret in what it wrote: its log, its crash dump and its files, but for its configuration.
func (o *provided) staysOut(t *testing.T, secrets ...string) {
	t.Helper()
	check.NoError(t, o.cmd.Process.Signal(syscall.SIGQUIT))
	o.ends(t, exitCould, "goroutine 1 ")
	var written strings.Builder
	read := 0
	err := filepath.WalkDir(o.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == o.config {
			return err
		}
		read++
		b, err := os.ReadFile(path)
		written.Write(b)
		return err
	})
	if err != nil || read < 3 {
		t.Fatalf("%d files, %v", read, err)
	}
	written.WriteString(command(t.Context(), nil, "ledger", "export", "-c", o.config).Stdout + o.stderr.String())
	for i, secret := range secrets {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(secret))
		for _, form := range []string{secret, encoded[:len(encoded)-1], url.QueryEscape(secret)} {
			if strings.Contains(written.String(), form) {
				t.Errorf("secret %d is in what was written", i)
			}
		}
	}
}
