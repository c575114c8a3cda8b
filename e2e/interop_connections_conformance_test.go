package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/golden"
)

// authRevisions are those with a golden file.
var authRevisions = []string{"2025-11-25", "2026-07-28"}

// refusedByDesign are the checks that the gateway does not pass, with the reason.
var refusedByDesign = map[string]string{
	"auth/authorization-server-migration sep-2352-reregister-on-as-change FAILURE": "the operator pins the issuer and registers the client: nobody is sent to an issuer that a server names later",
}

// notClientOf are scenarios that are not run: what they are about is not built, or is older than both revisions.
var notClientOf = map[string]string{
	"auth/2025-03-26-oauth-endpoint-fallback":   "a server without metadata (RFC 9728) cannot name the pinned issuer",
	"auth/2025-03-26-oauth-metadata-backcompat": "likewise",
	"auth/dpop":                             "an extension: tokens are bearer tokens",
	"auth/dpop-nonce":                       "likewise",
	"auth/enterprise-managed-authorization": "an extension: each person connects an account of their own",
	"auth/wif-jwt-bearer":                   "an extension: machines have a secret or a key",
}

// TestConformanceOfConnections: of the gateway as the OAuth client of a server, the suite says of every check what the golden
// files say. The test is the operator, the person's browser and the agent.
func TestConformanceOfConnections(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	all := in.authScenarios(t)
	var refused []string
	for _, revision := range authRevisions {
		var verdicts []string
		for _, s := range all[revision] {
			t.Run(revision+"/"+s, func(t *testing.T) { verdicts = append(verdicts, in.judgedConnection(t, s, revision)...) })
		}
		golden.File(t, goldenPath("auth-"+revision), strings.Join(verdicts, "\n")+"\n")
		refused = append(refused, slices.DeleteFunc(verdicts, func(v string) bool { return !notPassed(v) })...)
	}
	for _, v := range refused {
		if refusedByDesign[v] == "" {
			t.Errorf("%s, without a reason", v)
		}
	}
	if len(refused) != len(refusedByDesign) {
		t.Errorf("%d checks are refused, and %d have a reason", len(refused), len(refusedByDesign))
	}
}

// TestDocsConformanceOfConnections: the table of the page is that of the golden files.
func TestDocsConformanceOfConnections(t *testing.T) {
	var scenarios []string
	passed, all := make(map[[2]string]int), make(map[[2]string]int)
	for _, revision := range authRevisions {
		for _, v := range goldenVerdicts(t, "auth-"+revision) {
			scenario, _, _ := strings.Cut(v, " ")
			for _, row := range []string{scenario, "all"} {
				all[[2]string{row, revision}]++
				if !notPassed(v) {
					passed[[2]string{row, revision}]++
				}
			}
			if !slices.Contains(scenarios, scenario) {
				scenarios = append(scenarios, scenario)
			}
		}
	}
	slices.Sort(scenarios)
	var table strings.Builder
	fmt.Fprintf(&table, "\n| scenario | %s |\n| --- | --- | --- |\n", strings.Join(authRevisions, " | "))
	for _, scenario := range append(scenarios, "all") {
		fmt.Fprintf(&table, "| `%s` |", scenario)
		for _, revision := range authRevisions {
			at := [2]string{scenario, revision}
			if all[at] == 0 {
				table.WriteString(" – |")
			} else {
				fmt.Fprintf(&table, " %d of %d |", passed[at], all[at])
			}
		}
		table.WriteString("\n")
	}
	golden.Section(t, filepath.Join(repository, "docs", "reference", "gateway-protocol.md"), "<!-- auth: generated -->\n", "<!-- auth: end -->\n", table.String()+"\n")
}

// authScenarios returns the suite's scenarios for OAuth clients by revision. Extensions are part of both.
func (in interop) authScenarios(t *testing.T) map[string][]string {
	t.Helper()
	list, err := exec.Command(in.node, in.script("@modelcontextprotocol/conformance"), "list").Output()
	check.NoError(t, err)
	scenarios, left := make(map[string][]string), 0
	for _, found := range regexp.MustCompile(`- (auth/\S+) \[(.*)\]`).FindAllStringSubmatch(string(list), -1) {
		if notClientOf[found[1]] != "" {
			left++
			continue
		}
		for _, revision := range authRevisions {
			if strings.Contains(found[2], revision) || found[2] == "extension" {
				scenarios[revision] = append(scenarios[revision], found[1])
			}
		}
	}
	if left != len(notClientOf) {
		t.Errorf("%d scenarios are left out, %d are known", left, len(notClientOf))
	}
	return scenarios
}

// judgedConnection lets the suite judge the gateway in a scenario. Each verdict is there once: how often the gateway fetches
// metadata or uses a token is its own affair.
func (in interop) judgedConnection(t *testing.T, scenario, revision string) []string {
	t.Helper()
	here := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Run("client", func(t *testing.T) { // the suite waits for its end
			c := &authClient{t: t, server: r.FormValue("server")}
			if text := r.FormValue("context"); text != "" {
				check.NoError(t, json.Unmarshal([]byte(text), &c.context))
			}
			c.plays(strings.TrimPrefix(scenario, "auth/"))
		})
	}))
	defer here.Close()
	return slices.Compact(in.judgedClient(t, "handover "+here.URL, clientScenario{revision: revision, name: scenario}))
}

// handOver stands in for an MCP client under test: it hands the server, which the suite names last, to the test that listens
// at its first argument, and waits for it.
func handOver() {
	q := url.Values{"server": {os.Args[2]}, "context": {os.Getenv("MCP_CONFORMANCE_CONTEXT")}}
	resp, err := http.Get(os.Args[1] + "?" + q.Encode())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	resp.Body.Close()
}

// An authClient is a gateway in front of one of the suite's servers, with its operator, a person and the person's agent.
type authClient struct {
	t       *testing.T
	server  string // its URL; discover names it localhost
	context struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
	}

	dir, admin, text string // text is the configuration
	s                *served
	agent            *agent
	browser          *browser
}

const (
	suiteTool     = "test-tool"
	suiteDocument = "https://conformance-test.local/client-metadata.json" // the client that the suite knows by a document
)

// plays does what people do in a scenario.
func (c *authClient) plays(scenario string) {
	t := c.t
	t.Helper()
	switch scenario {
	case "resource-mismatch":
		command(t.Context(), nil, "connections", "discover", c.server).Expect(t, exitCould, "another resource")
		return
	case "metadata-issuer-mismatch":
		command(t.Context(), nil, "connections", "discover", c.server).Expect(t, exitCould, "names the issuer")
		return
	case "client-credentials-basic", "client-credentials-jwt":
		c.usesMachine()
		c.s.stop(t, exitYes)
		return
	case "basic-cimd":
		c.context.ID = suiteDocument
	}
	c.configures()
	c.begins()
	switch scenario {
	case "iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized":
		c.connects(http.StatusBadGateway)
		c.agent.gets(t, suiteTool, "{}", "credentials_needed")
	case "scope-step-up":
		c.connects(http.StatusOK)
		if d := c.agent.call(suiteTool, "{}").Result.Meta.Decision; d.Code != "credentials_refused" || !strings.Contains(d.Reason, `"mcp:write"`) {
			t.Errorf("without the scope: %+v", d)
		}
		c.writes(strings.Replace(c.text, `"mcp:basic"`, `"mcp:basic", "mcp:write"`, 1)) // the operator's scopes are the most that are asked for
		admin := map[string]string{tokenVariable: makeToken(t, c.s.config, "admin", "ops")}
		command(t.Context(), admin, "reload", "-c", c.s.config, "--url", c.s.admin).Want(t, exitYes)
		c.connects(http.StatusOK)
		c.agent.gets(t, suiteTool, "{}", "test")
	case "scope-retry-limit": // whatever the person grants
		for range 2 {
			c.connects(http.StatusOK)
			c.agent.gets(t, suiteTool, "{}", "credentials_refused")
		}
	case "authorization-server-migration":
		c.connects(http.StatusOK)
		c.agent.gets(t, suiteTool, "{}", "credentials_refused")
		c.connects(http.StatusServiceUnavailable)
	default:
		c.connects(http.StatusOK)
		c.agent.gets(t, suiteTool, "{}", "test")
	}
	c.s.stop(t, exitYes)
}

// configures writes what discover prints, with the client that the scenario has, or else one that register makes.
func (c *authClient) configures() {
	t := c.t
	t.Helper()
	r := command(t.Context(), nil, "connections", "discover", c.server)
	r.Want(t, exitYes)
	c.admin = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	c.writes(r.Stdout + "serve: {admin_url: \"http://" + c.admin + "\"}\n")
	if c.context.ID == "" {
		r = command(t.Context(), nil, "connections", "register", "localhost", "-c", filepath.Join(c.dir, "pgfsm.yaml"), "--json")
		r.Want(t, exitYes, "/redirect_uri", "http://"+c.admin+"/console/connected/localhost")
		c.context.ID, c.context.Secret = r.Member("/client_id"), r.Member("/client_secret")
	}
	c.writes(strings.Replace(c.text, "CLIENT_ID", fmt.Sprintf("%q", c.context.ID), 1))
}

// writes writes the configuration: what a scenario has of its own, and the rest.
func (c *authClient) writes(text string) {
	c.t.Helper()
	c.text = text
	if c.dir == "" {
		c.dir = clitest.Folder(c.t, "allowlist.json", `{"localhost": ["`+suiteTool+`"]}`, "connections.key", sealKey)
	}
	for name, content := range map[string]string{ // in any order
		"pgfsm.yaml":       "version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nconnections: {keys: [\"${file:connections.key}\"]}\n" + text,
		"localhost.secret": c.context.Secret,
		"localhost.key":    c.context.Key,
	} {
		if content != "" {
			check.NoError(c.t, os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
		}
	}
}

// begins starts the gateway. The agent is refused with the address where the person then signs in.
func (c *authClient) begins() {
	t := c.t
	t.Helper()
	c.s = serve(t, c.dir, "--admin", c.admin)
	token := makeToken(t, c.s.config, "person", "ann")
	c.agent = c.s.agent("/servers/localhost/mcp", token)
	if d := c.agent.call(suiteTool, "{}").Result.Meta.Decision; d.Code != "credentials_needed" || d.Connect != c.s.admin+"/console/connections" {
		t.Fatalf("the first call: %+v", d)
	}
	c.browser = signedIn(t, c.s, token)
}

// connects lets the person connect an account, and wants the status of the page where this ends.
func (c *authClient) connects(want int) {
	t := c.t
	t.Helper()
	status, page, _ := c.browser.sends(http.MethodPost, c.browser.page, url.Values{"do": {"connect"}, "server": {"localhost"}})
	if found := continueAt.FindStringSubmatch(page); found != nil {
		status, page, _ = c.browser.sends(http.MethodGet, html.UnescapeString(found[1]), nil)
	}
	if status != want {
		t.Errorf("connect: %d, want %d\n%s\n%s", status, want, page, c.s.stderr)
	}
}

// usesMachine calls the tool without a person.
func (c *authClient) usesMachine() {
	t := c.t
	t.Helper()
	r := command(t.Context(), nil, "connections", "discover", c.server, "--json")
	issuer, secret := r.Member("/discovered/issuer"), `client_secret: "${file:localhost.secret}"`
	if c.context.Key != "" {
		secret = fmt.Sprintf(`private_key: "${file:localhost.key}", issuer: %q`, issuer)
	}
	c.writes(fmt.Sprintf("servers: {localhost: {url: %q, auth: {client_credentials: {token_url: %q, client_id: %q, %s}}}}\n",
		c.server, issuer+"/token", c.context.ID, secret))
	c.s = serve(t, c.dir)
	c.s.agent("/servers/localhost/mcp", makeToken(t, c.s.config, "agent", "robot")).gets(t, suiteTool, "{}", "test")
}
