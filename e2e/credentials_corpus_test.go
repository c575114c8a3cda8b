package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
)

// repeats are the ways in which a server repeats the credentials of a call, with a hostile text beside them. ID stands for the id of the call.
var repeats = []func(w http.ResponseWriter, id, says, credentials string){
	func(w http.ResponseWriter, id, says, credentials string) {
		mcptest.SayJSON(w, http.StatusOK, mcptest.Response(id, `{"content":[{"type":"text","text":`+cli.Quote(strings.ToValidUTF8(says, "")+credentials)+`}]}`))
	},
	func(w http.ResponseWriter, id, says, credentials string) {
		mcptest.SayJSON(w, http.StatusOK, mcptest.Response(id, `{"content":[],"structuredContent":{`+cli.Quote(credentials)+`:`+cli.Quote(strings.ToValidUTF8(says, ""))+`}}`))
	},
	func(w http.ResponseWriter, id, says, credentials string) {
		text := cli.Quote(strings.ToValidUTF8(says, "") + credentials)
		mcptest.SayJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":1,"message":`+text+`,"data":`+text+`}}`)
	},
	func(w http.ResponseWriter, id, says, credentials string) {
		mcptest.SayJSON(w, http.StatusOK, mcptest.Response(id, says)+credentials)
	},
	func(w http.ResponseWriter, _, says, credentials string) {
		mcptest.SayJSON(w, http.StatusOK, says+credentials)
	},
	func(w http.ResponseWriter, _, says, credentials string) {
		w.Header().Set("Location", "/?"+credentials)
		http.Error(w, says+credentials, http.StatusTemporaryRedirect)
	},
	func(w http.ResponseWriter, _, says, credentials string) {
		http.Error(w, says+credentials, http.StatusInternalServerError)
	},
	func(w http.ResponseWriter, id, says, credentials string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":%s}}\n\n", cli.Quote(credentials))
		fmt.Fprintf(w, "id: %s\ndata: %s\n\n", credentials, mcptest.Response(id, mcptest.OneText))
	},
	func(w http.ResponseWriter, _, says, credentials string) {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+credentials+`"`)
		http.Error(w, says+credentials, http.StatusUnauthorized)
	},
}

// TestCorpusRepeatsCredentials: a server answers calls with hostile texts, with its access token and the assertion for it, in
// every kind of answer. Neither these nor the agent's token, nor a client's secret or private key is printed or recorded.
func TestCorpusRepeatsCredentials(t *testing.T) {
	t.Parallel()
	testCorpusRepeatsCredentials(t, inFile)
}

func testCorpusRepeatsCredentials(t *testing.T, url string) {
	const accessToken = "eyJhbGciOiJub25lIn0.t0ken-4711/+.sig=="
	texts := slices.Repeat([]string{"hello ", `{"a":`, "\xff\u202e\x1b[2J", `"}]}`, strings.Repeat("x", 5000)}, len(repeats))
	const consoleSecret = "console-s3cret/+=4711-of-the-corpus"
	private := newPrivateKey(t)
	var assertion atomic.Value // the last one
	u, next := mcptest.New(t, mcptest.Honest), atomic.Int32{}
	u.Does(func(w http.ResponseWriter, r *http.Request, id string) {
		n := int(next.Load())
		repeats[n%len(repeats)](w, id, texts[n%len(texts)], r.Header.Get("Authorization")+" "+assertion.Load().(string))
	})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assertion.Store(r.PostFormValue("client_assertion"))
		mcptest.SayJSON(w, http.StatusOK, `{"access_token":"`+accessToken+`","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(endpoint.Close)
	p := identitytest.New(t)
	o := &office{u: u}
	o.dir = cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  echo: {type: http, url: %q, auth: {client_credentials: {token_url: %q, client_id: pgfsm, private_key: "${file:key}", issuer: "https://login.example.com"}}}
allowlist: allowlist.json
ledger: %q
identity:
  required: true
  issuers: [{issuer: %q, audiences: {mcp: [gateway]}, people: [pgfsm-console], login: {console: pgfsm-console, console_secret: "${file:console}"}}]
`, u.URL, endpoint.URL, url, p.Issuer), "allowlist.json", `{"echo": ["look"]}`, "key", private, "console", consoleSecret)
	o.served = serve(t, o.dir)
	robot := (&provided{o, p}).robot("ci")
	a := o.agent("/servers/echo/mcp", robot)
	var answers strings.Builder
	for range texts {
		resp, err := a.send(cli.Patient(t), http.MethodPost, callMessage("look", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(&answers, resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		next.Add(1)
	}
	if got := int(u.Calls.Load()); got < len(texts) {
		t.Errorf("%d calls reached the server, want %d", got, len(texts))
	}
	o.stop(t, exitYes)
	written := map[string]string{
		"answers": answers.String(), "standard error": o.stderr.String(), "export": command(t.Context(), nil, "ledger", "export", "-c", o.config).Stdout,
	}
	if url == inFile {
		written["file"] = cli.Read(t, filepath.Join(o.dir, "pgfsm.db"))
	}
	if strings.Count(written["answers"], secret.Mask) < len(texts)/4 || !strings.Contains(written["export"], secret.Mask) {
		t.Errorf("the server repeats its token in %d answers only", strings.Count(written["answers"], secret.Mask))
	}
	_, signed, _ := strings.Cut(robot, ".")
	payload, signature, _ := strings.Cut(signed, ".")
	if assertion.Load().(string) == "" {
		t.Error("the client signed no assertion")
	}
	for by, all := range written { // in any order
		cli.WantNone(t, by, all, append(strings.Split(private, "\n")[1:3], accessToken, assertion.Load().(string), consoleSecret, payload, signature)...)
	}
}
