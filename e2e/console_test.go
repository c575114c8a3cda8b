package e2e

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
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

var (
	pageRow  = regexp.MustCompile(`<div><dt>(.*?)</dt><dd>(.*?)</dd></div>`)
	pageRule = regexp.MustCompile(`<h2>Risk rules</h2><ul>(.*?)</ul>`)
	pageItem = regexp.MustCompile(`<li>(.*?)</li>`)
	anyMark  = regexp.MustCompile(`</?mark[^>]*>`)
)

// rowsOfPage returns the rows of a page as the command line prints them.
func rowsOfPage(page string) (rows []string) {
	for _, section := range []string{"Tool", "Proof"} { // the commands print more about these
		page, _, _ = strings.Cut(page, "<h2>"+section+"</h2>")
	}
	for _, row := range pageRow.FindAllStringSubmatch(page, -1) {
		rows = append(rows, row[1]+": "+row[2])
	}
	if rules := pageRule.FindStringSubmatch(page); rules != nil {
		for _, rule := range pageItem.FindAllStringSubmatch(rules[1], -1) {
			rows = append(rows, "risk rule "+rule[1])
		}
	}
	for i, row := range rows {
		rows[i] = strings.TrimSpace(html.UnescapeString(anyMark.ReplaceAllString(row, "")))
	}
	return rows
}

// rowsOfCommand returns the first lines of a command that have a name and a value.
func rowsOfCommand(text string) (rows []string) {
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found || value == "" {
			break
		}
		rows = append(rows, name+": "+strings.TrimSpace(value))
	}
	return rows
}

// agrees checks that console, commands and API say the same of a run, and returns its status.
func (s *served) agrees(t *testing.T, v *visitor, auditor, run string, held bool) ledger.Status {
	t.Helper()
	pages := map[string][]string{"runs/": {"ledger", "show"}}
	if held {
		pages["calls/"] = []string{"approvals", "show"}
	}
	for page, words := range pages { // in any order
		shown := command(t.Context(), map[string]string{tokenVariable: auditor}, append(words, run, "-c", s.config)...)
		shown.Want(t, exitYes)
		want, got := rowsOfCommand(shown.Stdout), rowsOfPage(v.page(t, page+run))
		if len(want) < 6 {
			t.Errorf("%v prints few rows: %s", words, shown.Stdout)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-command +console):\n%s", page, diff)
		}
	}
	code, doc := status(t, s.admin, run, auditor)
	printed := command(t.Context(), nil, "ledger", "show", run, "-c", s.config, "--json")
	var api, cli present.Details
	if err := json.Unmarshal([]byte(doc), &api); err != nil || code != http.StatusOK {
		t.Fatalf("status: %d %v %s", code, err, doc)
	}
	compact := jsontext.Value(printed.Stdout)
	err := compact.Compact()
	if err == nil {
		err = json.Unmarshal(compact, &cli)
	}
	check.NoError(t, err)
	if diff := cmp.Diff(cli, api); diff != "" {
		t.Errorf("status (-command +API):\n%s", diff)
	}
	if cli.Request.Run != run {
		t.Errorf("the run is %+v", cli.Request)
	}
	text := html.UnescapeString(anyMark.ReplaceAllString(v.page(t, "runs/"+run), ""))
	if !strings.Contains(text, cli.Display) {
		t.Errorf("the console does not show the arguments as %s: %s", cli.Display, text)
	}
	return cli.Request.Status
}

// TestConsoleAgreesWithCommandsAndAPI: what the three say of a run is the same, field by field.
func TestConsoleAgreesWithCommandsAndAPI(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	a := o.agent("/mcp", o.ci)
	waits, approved, denied := o.held(t, a, `{"n":1}`), o.held(t, a, `{"n":2}`), o.held(t, a, `{"n":3}`)
	o.decide(t, "approve", approved, o.bob)
	o.decide(t, "deny", denied, o.bob)
	o.ended(t, approved, ledger.Executed, "")
	o.ended(t, denied, ledger.Denied, "approval_denied")
	auditor := makeToken(t, o.config, "auditor", "eve")
	v := o.visits(t, auditor)
	for name, run := range map[string]string{"waits": waits, "approved": approved, "denied": denied} { // in any order
		t.Run(name, func(t *testing.T) {
			status := o.agrees(t, v, auditor, run, true)
			if string(status) != map[string]string{"waits": "pending", "approved": "executed", "denied": "denied"}[name] {
				t.Errorf("the run is %s", status)
			}
		})
	}
	list := v.page(t, "runs?status=denied")
	if !strings.Contains(list, denied) || strings.Contains(list, approved) {
		t.Errorf("runs: %s", list)
	}
	inbox := v.page(t, "")
	if !strings.Contains(inbox, waits) || strings.Contains(inbox, denied) {
		t.Errorf("inbox: %s", inbox)
	}
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
