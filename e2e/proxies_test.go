package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/tool"
	"pgfsm/traces/ledger"
)

// The names in the configurations of packaging/examples.
const (
	forAgents = "https://mcp.example.com"
	forPeople = "https://approvals.example.com"
)

// A proxy is an nginx or a Caddy with its configuration of packaging/examples, in front of a gateway.
type proxy struct {
	dir     string
	address string
	roots   *x509.CertPool
	program []string
	cmd     *exec.Cmd
}

// newProxy configures and starts one. Only addresses and paths differ from the file.
func newProxy(t *testing.T, program string, s *served) *proxy {
	t.Helper()
	path := tool.Path(t, program, program)
	example := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile"}[program]
	config := clitest.Read(t, filepath.Join(repository, "packaging/examples", example))
	p := &proxy{dir: t.TempDir(), address: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	p.certify(t)
	_, port, _ := strings.Cut(p.address, ":")
	replaced := []string{"/etc/ssl/", p.dir + "/", "127.0.0.1:8787", strings.TrimPrefix(s.base, "http://"),
		"127.0.0.1:9464", strings.TrimPrefix(s.admin, "http://")}
	before, after := "{\n\tadmin off\n\thttps_port "+port+"\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n\tgrace_period 100ms\n}\n", ""
	file := filepath.Join(p.dir, "config")
	p.program = []string{path, "run", "--adapter", "caddyfile", "--config", file}
	if program == "nginx" {
		replaced = append(replaced, "listen 443 ", "listen "+p.address+" ")
		before, after = "daemon off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path a;\n"+
			"proxy_temp_path b;\nfastcgi_temp_path c;\nuwsgi_temp_path d;\nscgi_temp_path e;\n", "}\n"
		if os.Getuid() == 0 {
			before = "user root;\n" + before
		}
		p.program = []string{path, "-p", p.dir, "-c", file, "-e", filepath.Join(p.dir, "error.log")}
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(config, replaced[i]) {
			t.Fatalf("%s has no %q", example, replaced[i])
		}
	}
	clitest.Write(t, file, before+strings.NewReplacer(replaced...).Replace(config)+after)
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

// certify writes a certificate for both names.
func (p *proxy) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check.NoError(t, err)
	named := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	for _, at := range []string{forAgents, forPeople} {
		named.DNSNames = append(named.DNSNames, strings.TrimPrefix(at, "https://"))
	}
	public, err := x509.CreateCertificate(rand.Reader, named, named, &key.PublicKey, key)
	check.NoError(t, err)
	cert, err := x509.ParseCertificate(public)
	check.NoError(t, err)
	p.roots = x509.NewCertPool()
	p.roots.AddCert(cert)
	clitest.Write(t, filepath.Join(p.dir, "pgfsm.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})))
	clitest.Write(t, filepath.Join(p.dir, "pgfsm.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func (p *proxy) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.program[0], p.program[1:]...)
	p.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	said := new(lines)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	check.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the proxy says: %s", said)
		}
	})
	soon(t, "the proxy listens", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// stop ends the proxy and all its connections.
func (p *proxy) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	p.cmd.Wait() // the error only says that a signal ended it
}

// client is a client on another machine, with a token or none.
func (p *proxy) client(t *testing.T, token string) *http.Client {
	t.Helper()
	through := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.address)
	}}
	t.Cleanup(through.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	check.NoError(t, err)
	return &http.Client{Transport: &remote{through, token}, Jar: jar}
}

// readsAll makes every call without a person.
const readsAll = "version: 1\npolicies:\n  - {id: all, match: {tool: look}, effect: allow, reason: Everybody may look.}\n"

// TestProxies: the configurations of docs/operate/deploy.md pass calls, live event streams, disconnects and sign-ins.
func TestProxies(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"nginx", "caddy"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, readsAll, fmt.Sprintf("serve: {public_url: %q, admin_url: %q}\n", forAgents, forPeople))
			p := newProxy(t, program, o.served)
			session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
				&sdk.StreamableClientTransport{Endpoint: forAgents + "/mcp", HTTPClient: p.client(t, o.ci)}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, o.stderr)
			}
			defer session.Close()
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo__look", Arguments: map[string]any{"n": 1}})
			if err != nil || got.IsError {
				t.Fatalf("a call: %+v, %v\n%s", got, err, o.stderr)
			}
			p.refuses(t, o)
			p.streams(t, o)
			p.disconnects(t, o)
			p.signsIn(t, o)
		})
	}
}

// post sends a message of a client of 2026-07-28 to an address of the proxy.
func (p *proxy) post(t *testing.T, ctx context.Context, at, token, arguments string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"name":"echo__look","arguments":`+arguments+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}}}`))
	check.NoError(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {withoutThem}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo__look"}}
	return p.client(t, token).Do(req)
}

// refuses: the gateway answers itself, and the proxy refuses what the gateway would.
func (p *proxy) refuses(t *testing.T, o *office) {
	t.Helper()
	for _, tt := range []struct {
		name, at, token, arguments string
		status                     int // 0 is any error
		want                       string
	}{
		{"without-a-token", forAgents, "", `{}`, http.StatusUnauthorized, ""},
		{"at-the-name-of-the-admin-address", forPeople, o.ci, `{}`, http.StatusNotFound, ""},
		{"two-MiB", forAgents, o.ci, `{"s":"` + strings.Repeat("x", 2<<20) + `"}`, http.StatusOK, "arguments_too_large"},
		{"six-MiB", forAgents, o.ci, `{"s":"` + strings.Repeat("x", 6<<20) + `"}`, 0, ""}, // 413, or 502 if the gateway answered before Caddy had sent all
	} {
		resp, err := p.post(t, clitest.Patient(t), tt.at, tt.token, tt.arguments)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		refused := tt.status == 0 && resp.StatusCode >= http.StatusBadRequest
		if resp.StatusCode != tt.status && !refused || !strings.Contains(string(body), tt.want) {
			t.Errorf("%s: %s %.300s, want %d %s", tt.name, resp.Status, body, tt.status, tt.want)
		}
	}
}

// streams: the beginning of an event stream arrives while the stream is open.
func (p *proxy) streams(t *testing.T, o *office) {
	t.Helper()
	a := o.agent("/mcp", o.ci)
	req, err := http.NewRequestWithContext(clitest.Patient(t), http.MethodGet, forAgents+"/mcp", http.NoBody)
	check.NoError(t, err)
	req.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {a.session}, "Mcp-Protocol-Version": {"2025-11-25"}}
	resp, err := p.client(t, o.ci).Do(req)
	check.NoError(t, err)
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, ":") {
		t.Errorf("the stream: %s, %q, %v", resp.Status, line, err)
	}
}

// disconnects: the gateway notices that a client has disconnected, and cancels its call.
func (p *proxy) disconnects(t *testing.T, o *office) {
	t.Helper()
	o.u.SetReply(o.u.Hangs)
	defer o.u.SetReply(nil)
	before := o.u.Calls.Load()
	ctx, cancel := context.WithCancel(clitest.Patient(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := p.post(t, ctx, forAgents, o.ci, `{"n":2}`); err == nil {
			<-ctx.Done()
			resp.Body.Close()
		}
	}()
	soon(t, "the server has the call", func() bool { return o.u.Calls.Load() > before })
	cancel()
	<-done
	all := recorded(t, o.dir)
	o.ended(t, all[len(all)-1].RunID, ledger.Failed, "cancelled")
}

// signsIn: a person signs in at the console.
func (p *proxy) signsIn(t *testing.T, o *office) {
	t.Helper()
	link := command(t.Context(), map[string]string{tokenVariable: o.bob}, "console", "-c", o.config)
	link.Want(t, exitYes)
	bob := p.client(t, "")
	resp, err := bob.Post(strings.TrimSpace(link.Stdout), "application/x-www-form-urlencoded", http.NoBody)
	check.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	cookies := bob.Jar.Cookies(resp.Request.URL)
	if err != nil || !strings.Contains(string(page), "No call is held") || len(cookies) != 1 || cookies[0].Name != "__Host-pgfsm" {
		t.Errorf("%s, %v, %v\n%s", resp.Status, err, cookies, page)
	}
}
