package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// A remote is a client on another machine: it finds the addresses by their names.
type remote struct {
	*http.Transport
	token string
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	return r.Transport.RoundTrip(req)
}

// secured writes the certificate of example.com, and returns the keys of serve for it with a client that trusts it. The names of the
// two addresses differ in their port.
func secured(t *testing.T) (keys string, to func(s *served, token string) *http.Client) {
	t.Helper()
	example := httptest.NewTLSServer(http.NotFoundHandler())
	defer example.Close()
	dir, pair := t.TempDir(), example.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	check.NoError(t, err)
	cert := filepath.Join(dir, "tls.crt")
	clitest.Write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	clitest.Write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	keys = fmt.Sprintf("public_url: %q, admin_url: %q, tls: {cert: %q, key: %q}", "https://example.com", "https://example.com:9464",
		cert, filepath.Join(dir, "tls.key"))
	roots := x509.NewCertPool()
	roots.AddCert(example.Certificate())
	return keys, func(s *served, token string) *http.Client {
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			at := map[string]string{"example.com:443": s.base, "example.com:9464": s.admin}[address]
			return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(at, "https://"))
		}
		through := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: dial}
		t.Cleanup(through.CloseIdleConnections)
		jar, err := cookiejar.New(nil)
		check.NoError(t, err)
		return &http.Client{Transport: &remote{through, token}, Jar: jar}
	}
}

// TestServeTLS: agents and people reach the gateway from other machines, by names and with tokens.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	keys, to := secured(t)
	o := newOffice(t, holdLook, "serve: {"+keys+"}\n")
	if want := "mcp https://example.com/mcp, listening on https://127.0.0.1:"; !strings.HasPrefix(o.announced, want) {
		t.Errorf("serve prints %q, want the public URL and where it listens", o.announced)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: "https://example.com/mcp", HTTPClient: to(o.served, o.ci)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, o.stderr)
	}
	defer session.Close()
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo__look", Arguments: map[string]any{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	run := recorded(t, o.dir)[0].RunID

	link := command(t.Context(), map[string]string{tokenVariable: o.bob}, "console", "-c", o.config)
	link.Want(t, exitYes)
	if !strings.HasPrefix(link.Stdout, "https://example.com:9464/console/link/") {
		t.Errorf("the link is %s", link.Stdout)
	}
	bob := to(o.served, "")
	resp, err := bob.Post(strings.TrimSpace(link.Stdout), "application/x-www-form-urlencoded", http.NoBody)
	check.NoError(t, err)
	resp.Body.Close()
	resp, err = bob.Get("https://example.com:9464/console/calls/" + run)
	check.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	cookies := bob.Jar.Cookies(resp.Request.URL)
	if err != nil || !strings.Contains(string(page), "echo") || len(cookies) != 1 || cookies[0].Name != "__Host-pgfsm" {
		t.Errorf("%s, %v, %v\n%s", resp.Status, err, cookies, page)
	}
}
