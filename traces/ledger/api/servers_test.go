package api_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// defined is the definition of a tool in canonical form.
func defined(name, description string, schema map[string]any) []byte {
	return canonical.MustSorted(map[string]any{"name": name, "description": description, "inputSchema": schema})
}

var anyArguments = map[string]any{"type": "object"}

// listed returns what a service with a configuration knows of its server when that lists these definitions.
func listed(t *testing.T, c policy.Content, stored map[canonical.Digest][]byte, definitions ...[]byte) []present.ServerTool {
	t.Helper()
	return listedBy(t, c, "my pgfsm.yaml", stored, definitions...)
}

// listedBy is listed by a service with a configuration file; empty: the default.
func listedBy(t *testing.T, c policy.Content, file string, stored map[canonical.Digest][]byte, definitions ...[]byte) []present.ServerTool {
	t.Helper()
	page := `{"tools":[` + string(bytes.Join(definitions, []byte(","))) + "]}"
	event := &states.ToolsListed{Servers: statestest.Listings(page)}
	catalog := statestest.MustBundle(c, nil).Catalog(event.Catalog(), event.Servers)
	pins := &present.Pins{Config: file, Allowlist: "allowlist.json", Definition: func(d canonical.Digest) []byte { return stored[d] }}
	return present.ServerTools(&c, catalog, statestest.Server, pins)
}

// serving makes a service have servers.
func serving(all ...present.Server) func(*api.Options) {
	return func(o *api.Options) { o.Servers = func() ([]present.Server, string) { return all, "" } }
}

func digest(definition []byte) canonical.Digest { return canonical.Sum("tool definition", definition) }

// TestServers: what servers send is text, and no command is offered that cannot work. testdata/pages/servers.txt is what the page says of tools
// that are as they were pinned, that differ, and that agents may not call.
func TestServers(t *testing.T) {
	d := newFixture(t)
	c := ledgertest.Holding(1)
	before, after := defined("drifts", "Reads a file.", anyArguments), defined("drifts", hostile, anyArguments)
	c.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: []string{"drifts", "lost", "refused", "absent", "-dash"}}}
	for name, pin := range map[string]canonical.Digest{"drifts": digest(before), "lost": canonical.Sum("tool definition", nil)} { // in any order
		c.Pins = append(c.Pins, policy.Pin{Server: statestest.Server, Tool: name, Definition: pin})
	}
	tools := listed(t, c, map[canonical.Digest][]byte{digest(before): before}, after, defined("lost", "It is not stored.", anyArguments),
		defined("refused", "Has a bad schema.", map[string]any{"type": "object", "minLength": "x"}), defined("-dash", "Is like a flag.", anyArguments),
		defined("<img src=x onerror=hacked()>\u202e", hostile, anyArguments))
	d.with(c, serving(
		present.Server{Server: statestest.Server, Status: policy.ServerUp, Name: hostile, Version: hostile, Tools: tools},
		present.Server{Server: "away", Status: policy.ServerDown, Code: policy.CodeServerDown, Reason: hostile},
		present.Server{Server: "quiet", Status: present.ServerUnknown},
	))
	got := d.signedIn(here, alice, ledger.RoleApprover).page("servers")
	got.want(t, http.StatusOK, "Nobody has used this server since the service started", "What changed in lost", "The pinned definition is not stored",
		"pgfsm pins approve --expect "+string(digest(after))+" -c &#39;my pgfsm.yaml&#39; "+statestest.Server+" drifts")
	for name, want := range map[string]string{
		"refused": "schema_refused", "absent": "the server does not list it", "-dash": "-- " + statestest.Server + " -dash", "&lt;img src=x": "pgfsm allow -c",
	} { // in any order
		if text := row(t, got.body, name); !strings.Contains(text, want) {
			t.Errorf("the row of %s is %s, want %s", name, text, want)
		}
	}
	if text := row(t, got.body, "refused"); strings.Contains(text, "pgfsm pins approve") {
		t.Errorf("a command is offered that cannot work: %s", text)
	}
	_, drift, _ := strings.Cut(got.body, "What changed in drifts")
	if drift, _, _ = strings.Cut(drift, "</section>"); !strings.Contains(drift, `<mark class="odd">\u202e</mark>drowssap`) {
		t.Errorf("escapes in the difference are not marked: %s", drift)
	}
	if visible.Lines(got.body) != got.body {
		t.Errorf("there are characters that do not show: %q", got.body)
	}
	for _, bad := range []string{"<script>", "<img", "<form action=/"} {
		if strings.Contains(got.body, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// TestManyTools: the page of a server with many long tools, all of them changed, is bounded, and says what it omits.
func TestManyTools(t *testing.T) {
	d := newFixture(t)
	c := ledgertest.Holding(1)
	c.Allowlist = []policy.Allowance{{Server: statestest.Server}}
	stored := make(map[canonical.Digest][]byte)
	var now [][]byte
	for i := range 1000 {
		name := "tool_" + strings.Repeat("x", 20) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)
		was := defined(name, strings.Repeat("before ", 400), anyArguments)
		stored[digest(was)] = was
		now = append(now, defined(name, strings.Repeat("after ", 400), anyArguments))
		c.Allowlist[0].Tools = append(c.Allowlist[0].Tools, name)
		c.Pins = append(c.Pins, policy.Pin{Server: statestest.Server, Tool: name, Definition: digest(was)})
	}
	d.with(c, serving(present.Server{Server: statestest.Server, Status: policy.ServerUp, Tools: listed(t, c, stored, now...)}))
	got := d.signedIn(here, alice, ledger.RoleApprover).page("servers")
	got.want(t, http.StatusOK, "1000 tools have another definition", "800 more tools are not listed here", "1 more change is not shown here: run <code>pgfsm pins diff</code>")
	if n := len(got.body); n > 1<<20 {
		t.Errorf("the page has %d bytes", n)
	}
}

// TestServersOfAService without servers says so, and shows what the ledger knows.
func TestServersOfAServiceWithoutServers(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("servers").want(t, http.StatusOK, "This service has no servers of its own", "No run has used a server yet")
	d.Ask(carol, statestest.Content())
	b.page("servers").want(t, http.StatusOK, "<h2>"+statestest.Server+"</h2> <span class=\"chip \">", "1 call made</a>, 0 failed")
	b.post(b.base+"servers", url.Values{}).want(t, http.StatusBadRequest)
	d.with(statestest.Content(), serving())
	d.with(statestest.Content(), serving(present.Server{Server: statestest.Server, Status: policy.ServerUp}))
	b.page("servers").want(t, http.StatusOK, "No tool differs")
	d.with(statestest.Content(), serving()) // the ledger knows the server
	got := b.page("servers")
	if got.want(t, http.StatusOK, "The tools of 1 server are not known now"); strings.Contains(got.body, "No tool differs") {
		t.Errorf("the page judges tools that nobody has listed: %s", got.body)
	}
}

// TestAskServers: the button asks once, in the context of the request, and shows the page again.
func TestAskServers(t *testing.T) {
	d := newFixture(t)
	asked := 0
	var fails error
	d.with(statestest.Content(), serving(present.Server{Server: "kb", Status: present.ServerUnknown}), func(o *api.Options) {
		o.AskServers = func(ctx context.Context) error {
			asked++
			return errors.Join(fails, ctx.Err())
		}
	})
	b := d.signedIn(here, alice, ledger.RoleAuditor)
	got := b.post(b.base+"servers", url.Values{})
	if got.want(t, http.StatusSeeOther); got.header.Get("Location") != b.base+"servers" || asked != 1 {
		t.Errorf("%s, asked %d times", got.header.Get("Location"), asked)
	}
	b.page("servers").want(t, http.StatusOK, "Ask the servers now")
	fails = errors.New("secret: " + hostile)
	if got := b.post(b.base+"servers", url.Values{}); got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
