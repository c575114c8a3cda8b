//go:build unix

package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// authority makes a CA, and a certificate of it for a host, as PEM.
func authority(t *testing.T, host string) (ca, cert, key string) {
	t.Helper()
	text := func(kind string, der []byte, err error) string {
		t.Helper()
		check.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(t, err)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{host},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, secret.Public(), secret)
	ca = text("CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, leaf, root, secret.Public(), secret)
	cert = text("CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(secret)
	return ca, cert, text("PRIVATE KEY", der, err)
}

// TestTLS: a store connects only to a server with a certificate for the URL's host, of the URL's authority, and never without TLS.
func TestTLS(t *testing.T) {
	c := pgtest.Start(t)
	check.NoError(t, c.Exec(t.Context(), "postgres", "CREATE DATABASE pgfsm"))
	check.NoError(t, c.Ledger(t.Context(), "pgfsm"))
	ca, cert, key := authority(t, "localhost")
	other, _, _ := authority(t, "localhost")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	right, wrong := file("ca.pem", ca), file("other.pem", other)
	url := func(host, mode, ca string) string {
		u := strings.Replace(c.URL(serves, "pgfsm"), "127.0.0.1", host, 1)
		return strings.Replace(u, "sslmode=disable", "sslmode="+mode+"&sslrootcert="+ca, 1) + "&lease=" + lease.String()
	}
	try := func(name, url string, ok bool) {
		t.Helper()
		s, err := postgres.Open(url)
		if err == nil {
			if err = s.Update(t.Context(), func(ledger.Tx) error { return nil }); err != nil {
				t.Errorf("%s: Update() = %v", name, err)
			}
			s.Close()
		}
		if (err == nil) != ok {
			t.Errorf("%s: Open() = %v, want success: %t", name, err, ok)
		}
	}
	try("no-tls", url("localhost", "verify-full", right), false)
	try("no-tls", url("localhost", "require", right), false)
	serveTLS(t, c, cert, key)
	try("right", url("localhost", "verify-full", right), true)
	try("another-host", url("127.0.0.1", "verify-full", right), false)
	try("another-host-unverified", url("127.0.0.1", "verify-ca", right), true)
	try("another-authority", url("localhost", "verify-full", wrong), false)
	try("another-authority-required", url("localhost", "require", wrong), false)
	try("no-authority", url("localhost", "verify-full", filepath.Join(dir, "none.pem")), false)
}

// serveTLS gives a server a certificate.
func serveTLS(t *testing.T, c *pgtest.Cluster, cert, key string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL(pgtest.Superuser, "postgres"))
	check.NoError(t, err)
	defer conn.Close(t.Context())
	for name, text := range map[string]string{"server.crt": cert, "server.key": key} { // in the server's directory, in any order
		if _, err := conn.Exec(t.Context(), "COPY (SELECT 1 WHERE false) TO PROGRAM 'umask 077; echo \""+text+"\" > "+name+"'"); err != nil {
			t.Fatal(err)
		}
	}
	c.Set(t, "ssl", "on")
}
