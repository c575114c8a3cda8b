package web_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
)

// An authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign signs a certificate, or one of a new authority by itself.
func (a *authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed, key
}

// leaf returns the PEM text of a new certificate and its key.
func (a *authority) leaf(name string) (cert, key []byte) {
	a.t.Helper()
	c, k := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// A tlsFixture serves with TLS, and answers requests with the name in the client's certificate.
type tlsFixture struct {
	t        *testing.T
	files    web.TLSFiles
	ca       *authority
	at       string
	reported []string
}

func servingTLS(t *testing.T, clients *authority) *tlsFixture {
	dir := t.TempDir()
	fixture := &tlsFixture{t: t, ca: newAuthority(t, "servers"), files: web.TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}}
	fixture.use("first.test")
	if clients != nil {
		fixture.files.ClientCA = filepath.Join(dir, "ca.crt")
		fixture.write(fixture.files.ClientCA, clients.pem())
	}
	files, err := web.NewTLS(fixture.files, func(err error) { fixture.reported = append(fixture.reported, err.Error()) })
	check.NoError(t, err)
	on, err := files.Listen("127.0.0.1:0")
	check.NoError(t, err)
	if at := web.Origin(on); at != "https://"+on.Addr().String() {
		t.Errorf("the origin is %s", at)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Authenticated(r.Context(), "x")
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			_, _ = io.WriteString(w, certs[0].Subject.CommonName)
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(web.Shed(s, on, 1)) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	fixture.at = on.Addr().String()
	return fixture
}

func (fixture *tlsFixture) write(path string, text []byte) {
	fixture.t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		fixture.t.Fatal(err)
	}
}

// use replaces the certificate by a new one.
func (fixture *tlsFixture) use(name string) {
	cert, key := fixture.ca.leaf(name)
	fixture.write(fixture.files.Cert, cert)
	fixture.write(fixture.files.Key, key)
}

// client returns a client that trusts the fixture's authority, if the server has the name.
func (fixture *tlsFixture) client(name string, with ...tls.Certificate) *http.Client {
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: name, Certificates: with}
	config.RootCAs.AddCert(fixture.ca.cert)
	return fixture.clientWith(config)
}

func (fixture *tlsFixture) clientWith(config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	fixture.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func (fixture *tlsFixture) get(c *http.Client) (string, error) {
	fixture.t.Helper()
	resp, err := c.Get("https://" + fixture.at)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.ProtoMajor != 1 {
		fixture.t.Errorf("the protocol is %s", resp.Proto)
	}
	return string(text), err
}

func TestTLSVersions(t *testing.T) {
	fixture := servingTLS(t, nil)
	if _, err := fixture.get(fixture.client("first.test")); err != nil {
		t.Error(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "first.test", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	config.RootCAs.AddCert(fixture.ca.cert)
	if _, err := fixture.get(fixture.clientWith(config)); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	resp, err := http.Get("http://" + fixture.at)
	if err == nil {
		defer resp.Body.Close()
	}
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %v, %v", resp, err)
	}
}

func TestClientCertificates(t *testing.T) {
	clients := newAuthority(t, "clients")
	fixture := servingTLS(t, clients)
	pair := func(a *authority) tls.Certificate {
		c, err := tls.X509KeyPair(a.leaf("ci-agent"))
		check.NoError(t, err)
		return c
	}
	if name, err := fixture.get(fixture.client("first.test", pair(clients))); err != nil || name != "ci-agent" {
		t.Errorf("%q, %v", name, err)
	}
	if _, err := fixture.get(fixture.client("first.test")); err == nil {
		t.Error("a client without a certificate was served")
	}
	// An authority of the same name: the client sends the certificate, which it would not do for another name.
	if _, err := fixture.get(fixture.client("first.test", pair(newAuthority(t, "clients")))); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
}

// Changed files count for new connections. What cannot be used is reported once, and does not count.
func TestTLSFilesChange(t *testing.T) {
	fixture := servingTLS(t, nil)
	first := fixture.client("first.test")
	want := func(c *http.Client, served bool, reports int) {
		t.Helper()
		if _, err := fixture.get(c); (err == nil) != served || len(fixture.reported) != reports {
			t.Errorf("error %v, want served %v; reported %q", err, served, fixture.reported)
		}
	}
	want(first, true, 0)
	fixture.use("second-name.test") // longer: file systems may give two quick writes one time
	want(first, true, 0)            // on its connection
	first.CloseIdleConnections()
	want(first, false, 0)
	want(fixture.client("second-name.test"), true, 0)

	fixture.write(fixture.files.Key, []byte("no key"))
	want(fixture.client("second-name.test"), true, 1)
	want(fixture.client("second-name.test"), true, 1)
	check.NoError(t, os.Remove(fixture.files.Cert))
	want(fixture.client("second-name.test"), true, 2)
	fixture.use("third-and-last.test")
	want(fixture.client("third-and-last.test"), true, 2)
}

// A client whose authority is not trusted any more does not resume the session that it had.
func TestClientAuthorityChanges(t *testing.T) {
	clients := newAuthority(t, "clients")
	fixture := servingTLS(t, clients)
	own, err := tls.X509KeyPair(clients.leaf("ci-agent"))
	check.NoError(t, err)
	config := &tls.Config{
		RootCAs: x509.NewCertPool(), ServerName: "first.test", Certificates: []tls.Certificate{own}, ClientSessionCache: tls.NewLRUClientSessionCache(1),
	}
	config.RootCAs.AddCert(fixture.ca.cert)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := config.Clone()
		config.MaxVersion = version
		for range 2 {
			conn, err := tls.Dial("tcp", fixture.at, config)
			check.NoError(t, err)
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadAll(conn); err != nil || conn.ConnectionState().DidResume {
				t.Errorf("version %x: resumed %t, %v", version, conn.ConnectionState().DidResume, err)
			}
			conn.Close()
		}
	}
	fixture.write(fixture.files.ClientCA, newAuthority(t, "other clients").pem())
	if _, err := fixture.get(fixture.clientWith(config)); err == nil {
		t.Error("a client of an authority that was removed is served")
	}
	if len(fixture.reported) != 0 {
		t.Errorf("reported %q", fixture.reported)
	}
}

// A client that does not begin the handshake gives its place to another one.
func TestHandshakesThatNeverBegin(t *testing.T) {
	fixture := servingTLS(t, nil)
	silent, err := net.Dial("tcp", fixture.at)
	check.NoError(t, err)
	defer silent.Close()
	if _, err := fixture.get(fixture.client("first.test")); err != nil {
		t.Error(err)
	}
}

// TestNewTLSRefusesOthersFiles: what proves who the gateway is, and whom it trusts, follows the rule of the files that the configuration names.
func TestNewTLSRefusesOthersFiles(t *testing.T) {
	fixture := servingTLS(t, newAuthority(t, "clients"))
	for _, path := range []string{fixture.files.Cert, fixture.files.Key, fixture.files.ClientCA} {
		check.NoError(t, os.Chmod(path, 0o666))
		if _, err := web.NewTLS(fixture.files, nil); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("NewTLS() with a writable %s = %v, want its name and chmod go-w", filepath.Base(path), err)
		}
		check.NoError(t, os.Chmod(path, 0o600))
	}
}

func TestNewTLSRefuses(t *testing.T) {
	dir := t.TempDir()
	fixture := &tlsFixture{t: t, ca: newAuthority(t, "servers"), files: web.TLSFiles{Cert: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}}
	fixture.use("first.test")
	cert, key := fixture.ca.leaf("second.test")
	for _, tt := range []struct {
		name          string
		cert, key, ca []byte
		want          string
	}{
		{"key-of-another-certificate", cert, nil, nil, "private key does not match"},
		{"no-certificate", []byte("x"), nil, nil, "PEM"},
		{"files-mixed-up", key, cert, nil, "PEM"},
		{"authority-without-certificate", nil, nil, key, "contains no PEM certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := web.TLSFiles{Cert: fixture.files.Cert, Key: fixture.files.Key}
			for _, f := range []struct {
				path *string
				text []byte
			}{{&files.Cert, tt.cert}, {&files.Key, tt.key}, {&files.ClientCA, tt.ca}} {
				if f.text != nil {
					*f.path = filepath.Join(t.TempDir(), "f")
					fixture.write(*f.path, f.text)
				}
			}
			_, err := web.NewTLS(files, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || bytes.Contains([]byte(err.Error()), key[30:60]) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}
