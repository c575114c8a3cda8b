package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger"
)

// A visitor is a browser that is signed in at the console.
type visitor struct {
	*http.Client
	base string // of the session's pages
}

// visits signs the owner of a token in with a link.
func (s *served) visits(t *testing.T, token string) *visitor {
	t.Helper()
	link := command(t.Context(), map[string]string{tokenVariable: token}, "console", "-c", s.config, "--url", s.admin)
	link.Want(t, exitYes)
	jar, err := cookiejar.New(nil)
	check.NoError(t, err)
	v := &visitor{Client: &http.Client{Jar: jar}}
	resp, err := v.PostForm(strings.TrimSpace(link.Stdout), nil)
	check.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the link does not sign in: %s", resp.Status)
	}
	v.base = resp.Request.URL.String()
	return v
}

// page returns the text of a page.
func (v *visitor) page(t *testing.T, path string) string {
	t.Helper()
	resp, err := v.Get(v.base + path)
	check.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", path, resp.Status, err, body)
	}
	return string(body)
}

// TestConsoleVoteMakesTheCall: a vote in the console is a vote, and the worker is woken.
func TestConsoleVoteMakesTheCall(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	run := o.held(t, o.agent("/mcp", o.ci), `{"n":1}`)
	v := o.visits(t, o.bob)
	page := v.page(t, "calls/"+run)
	_, digest, _ := strings.Cut(page, `name="digest" value="`)
	digest, _, _ = strings.Cut(digest, `"`)
	resp, err := v.PostForm(v.base+"calls/"+run, url.Values{"vote": {"approve"}, "digest": {digest}, "reason": {"fine"}})
	check.NoError(t, err)
	resp.Body.Close()
	o.ended(t, run, ledger.Executed, "")
	o.u.Reached(t, 1)
	verifies(t, o.dir)
	auditor := o.visits(t, makeToken(t, o.config, "auditor", "eve"))
	stream, err := auditor.Get(auditor.base + "events?of=held&after=0")
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("the stream: %v %v", stream, err)
	}
	defer stream.Body.Close()
	command(t.Context(), nil, "token", "revoke", "-c", o.config, tokenOf(o.bob)).Want(t, exitYes)
	if resp, err := v.Get(v.base); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the session outlives its token: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	o.stop(t, exitYes) // an open stream cuts nothing off
}

// TestConsoleOpensTheBrowser: by a file that only the user can read, and never by an argument.
func TestConsoleOpensTheBrowser(t *testing.T) {
	t.Parallel()
	tool.Path(t, "curl", "curl") // stands in for a browser
	o := newOffice(t, holdLook, "")
	dir := t.TempDir()
	program := filepath.Join(dir, "browser")
	clitest.Write(t, program, "#!/bin/sh\necho \"$@\" > "+dir+"/args\nstat -c %a \"$1\" > "+dir+"/mode\ncp \"$1\" "+dir+"/page\n"+
		"link=$(sed 's/.*url=\\([^\"]*\\)\".*/\\1/' \"$1\")\ncurl -s -o "+dir+"/answer -H 'Sec-Fetch-Site: same-origin' -d '' \"$link\"\n")
	check.NoError(t, os.Chmod(program, 0o700))
	got := command(clitest.Patient(t), map[string]string{tokenVariable: o.bob, "BROWSER": program}, "console", "-c", o.config, "--url", o.admin, "--open")
	got.Want(t, exitYes)
	args, mode, page := clitest.Read(t, dir+"/args"), clitest.Read(t, dir+"/mode"), clitest.Read(t, dir+"/page")
	_, secret, _ := strings.Cut(page, "/console/link/")
	secret, _, _ = strings.Cut(secret, `"`)
	if len(secret) != 43 || strings.Contains(args+got.Stdout+got.Stderr+o.stderr.String(), secret) || strings.TrimSpace(mode) != "600" {
		t.Errorf("the secret %s of %s; arguments %s; mode %s; printed %s%s", secret, page, args, mode, got.Stdout, got.Stderr)
	}
	if _, err := os.Stat(strings.TrimSpace(args)); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}
