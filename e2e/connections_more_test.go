package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// TestPeopleNeverUseTheMachinesAccount: a server has client credentials beside people's accounts. Agents without a person use them, also in the
// calls of the operator; a person whose account is missing, has ended or was refused never does.
func TestPeopleNeverUseTheMachinesAccount(t *testing.T) {
	t.Parallel()
	who := newWhoami(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mcptest.SayJSON(w, http.StatusOK, `{"access_token":"pat-machine-4711","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(endpoint.Close)
	dir := who.folder(t, "")
	config := filepath.Join(dir, "pgfsm.yaml")
	credentials := fmt.Sprintf(`auth: {client_credentials: {token_url: %q, client_id: pgfsm, client_secret: client-s3cret}, person:`, endpoint.URL)
	clitest.Write(t, config, strings.Replace(clitest.Read(t, config), "auth: {person:", credentials, 1))
	s := serve(t, dir)
	ann, robot := s.agent("/mcp", makeToken(t, s.config, "person", "ann")), s.agent("/mcp", makeToken(t, s.config, "agent", "robot"))
	robot.gets(t, "forge__look", "{}", "machine")
	robot.gets(t, "forge__connect", "{}", "-32602")
	ann.gets(t, "forge__look", "{}", "credentials_needed")
	b := signedIn(t, s, ann.token)
	b.connects("pat-ann-4711")
	ann.gets(t, "forge__look", "{}", "ann")
	robot.gets(t, "forge__look", "{}", "machine")
	bad := "pat-ann-4711"
	who.refused.Store(&bad)
	ann.gets(t, "forge__look", "{}", "credentials_refused")
	ann.gets(t, "forge__look", "{}", "credentials_refused")
	b.disconnects()
	ann.gets(t, "forge__look", "{}", "credentials_needed")
	s.stop(t, exitYes)
	for token, want := range map[string]string{"": "machine", ann.token: "each person uses it with an account of their own"} { // in any order
		r := command(t.Context(), map[string]string{"PGFSM_TOKEN": token}, "call", "-c", s.config, "forge", "look", "{}")
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("pgfsm call with the token %q: %s %s", token, r.Stdout, r.Stderr)
		}
	}
	verifies(t, dir)
}

// TestConnectedClientsAreTold: an open stream of a client is told of changed tools when its person connects and when the connection ends, also by
// another process; the stream of another person is not.
func TestConnectedClientsAreTold(t *testing.T) {
	t.Parallel()
	who := newWhoami(t)
	s := serve(t, who.folder(t, ""))
	ann, ben := s.agent("/mcp", makeToken(t, s.config, "person", "ann")), s.agent("/mcp", makeToken(t, s.config, "person", "ben"))
	streams := make(map[*agent]*bufio.Scanner)
	for _, a := range []*agent{ann, ben} {
		resp, err := a.send(t.Context(), http.MethodGet, "")
		check.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		streams[a] = bufio.NewScanner(resp.Body)
	}
	told := func(a *agent) {
		t.Helper()
		for streams[a].Scan() {
			if strings.Contains(streams[a].Text(), "notifications/tools/list_changed") {
				return
			}
		}
		t.Fatalf("the stream ended: %v", streams[a].Err())
	}
	b := signedIn(t, s, ann.token)
	b.connects("pat-ann-4711")
	told(ann)
	ann.gets(t, "forge__look", "{}", "ann")
	command(t.Context(), nil, "connections", "revoke", "-c", s.config, "ann", "--server", "forge").Want(t, exitYes)
	told(ann)
	if got := ann.lists(); got != `["name":"forge__connect"]` {
		t.Errorf("tools: %s", got)
	}
	signedIn(t, s, ben.token).connects("pat-ben-4711")
	told(ben) // the first that this stream is told
	ann.gets(t, "forge__look", "{}", "credentials_needed")
}

// TestUsersAreShownWhereToConnect: a client that can show addresses gets that of the console: with a session in a request of the gateway, without
// one in place of the answer, once.
func TestUsersAreShownWhereToConnect(t *testing.T) {
	t.Parallel()
	s := serve(t, newWhoami(t).folder(t, ""))
	token := makeToken(t, s.config, "person", "ann")
	can, page := `{"elicitation":{"url":{}}}`, s.admin+"/console/connections"
	resp, err := s.agentThat("/mcp", token, can).send(t.Context(), http.MethodPost,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forge__look","arguments":{}}}`)
	check.NoError(t, err)
	defer resp.Body.Close()
	all, err := messages(resp)
	check.NoError(t, err)
	if len(all) != 2 || !strings.Contains(string(all[0]), "elicitation/create") || !strings.Contains(string(all[0]), page) ||
		!strings.Contains(string(all[1]), "credentials_needed") {
		t.Errorf("with a session: %q", all)
	}

	client := &stateless{s: s, url: s.mcp, token: token, can: can}
	asked := client.call(t, "forge__look", `{}`)
	state, err := clitest.ValueAt(asked.Raw, "/result/requestState")
	if err != nil || asked.Result.Type != "input_required" || !strings.Contains(string(asked.Raw), page) {
		t.Fatalf("without a session: %s", asked.Raw)
	}
	again, err := client.ask(t.Context(), "tools/call", "forge__look", `"name":"forge__look","arguments":{},"inputResponses":{"decide":{"action":"accept"}},"requestState":`+string(state))
	check.NoError(t, err)
	defer again.Body.Close()
	all, err = messages(again)
	check.NoError(t, err)
	if got := string(all[len(all)-1]); !strings.Contains(got, "credentials_needed") || strings.Contains(got, "input_required") {
		t.Errorf("repeated: %s", got)
	}
}

// TestReloadedConnections: after a reload, a token is sent only to the address for which it was pasted, and a new key takes over without a gap.
func TestReloadedConnections(t *testing.T) {
	t.Parallel()
	who, other := newWhoami(t), newWhoami(t)
	s := serve(t, who.folder(t, "", "new.key", newSealKey))
	ann := s.agent("/mcp", makeToken(t, s.config, "person", "ann"))
	b := signedIn(t, s, ann.token)
	b.connects("pat-ann-4711")
	ann.gets(t, "forge__look", "{}", "ann")
	original := clitest.Read(t, s.config)
	admin := map[string]string{"PGFSM_TOKEN": makeToken(t, s.config, "admin", "root")}
	reloaded := ""
	reload := func(old, now string) {
		t.Helper()
		clitest.Write(t, s.config, strings.Replace(original, old, now, 1))
		r := command(t.Context(), admin, "reload", "-c", s.config, "--url", s.admin)
		r.Want(t, exitYes)
		reloaded = r.Stdout + r.Stderr
	}
	reload("secret: {", `secret: {prefix: "Basic ", `) // sessions that are open follow
	ann.gets(t, "forge__look", "{}", "credentials_refused")
	reload("", "")
	ann.gets(t, "forge__look", "{}", "ann")

	const key = `"${file:connections.key}"`
	reload(key, `"${file:new.key}", `+key)
	ann.gets(t, "forge__look", "{}", "ann")
	command(t.Context(), admin, "connections", "reseal", "--json", "-c", s.config).Want(t, exitYes, "/resealed", "1")
	reload(key, `"${file:new.key}"`)
	ann.gets(t, "forge__look", "{}", "ann")

	reload(who.URL, other.URL)
	ann.gets(t, "forge__look", "{}", "credentials_needed")
	if _, page, _ := b.sends(http.MethodGet, b.page, nil); !strings.Contains(page, "the configuration of the server has changed") {
		t.Errorf("the page: %s", page)
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("the other server got %d requests", n)
	}
	reload(key, `"${file:new.key}"`)
	ann.gets(t, "forge__look", "{}", "ann")

	// What the configuration cannot use is counted and listed, and can be revoked.
	cannot := func(why, old, now string) {
		t.Helper()
		reload(old, now)
		if want := "1 connections of people cannot be used"; !strings.Contains(reloaded, want) {
			t.Errorf("%s: the reload says %s", why, reloaded)
		}
		command(t.Context(), nil, "connections", "list", "-c", s.config).Expect(t, exitYes, why)
	}
	cannot("no key of connections.keys opens the credentials", "-", "-")
	another := serve(t, s.dir)
	soon(t, "the start warns", func() bool {
		return strings.Contains(another.stderr.String(), "1 connections of people cannot be used")
	})
	cannot("the configuration of the server has changed", who.URL, other.URL)
	cannot("the configuration has no such server", "servers: {forge:", "servers: {smithy:")
	command(t.Context(), admin, "connections", "revoke", "-c", s.config).Expect(t, exitNo, "name a person or a server")
	command(t.Context(), admin, "connections", "revoke", "--server", "forge", "-c", s.config).Expect(t, exitYes, "The connection of ann to forge has ended")
	command(t.Context(), nil, "connections", "list", "-c", s.config).Expect(t, exitYes, "Nobody has connected an account")
}
