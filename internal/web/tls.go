package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"

	"pgfsm/internal/safefile"
)

// TLSFiles name the PEM files of listeners with TLS.
type TLSFiles struct {
	Cert, Key string
	ClientCA  string // certificates of the CAs that sign clients' certificates; empty: clients need none
}

// TLS listens with TLS 1.2 or later. Each connection gets the files' content of that time: if a
// file has changed, all are read again, and if they cannot be used, the content before stays. It is
// safe for concurrent use.
type TLS struct {
	files  TLSFiles
	report func(error)

	mu     sync.Mutex
	read   string // identifies what was read last
	config *tls.Config
}

// NewTLS reads the files. report is called when changed files cannot be used; it must not block.
func NewTLS(files TLSFiles, report func(error)) (*TLS, error) {
	t := &TLS{files: files, report: report, read: files.stateText()}
	var err error
	t.config, err = files.loadConfig()
	return t, err
}

// Listen listens on HOST:PORT.
func (t *TLS) Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &tlsListener{listener, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: t.currentConfig}}, nil
}

// A tlsListener accepts connections without TLS; [Shed] adds it, so that a handshake counts as a
// connection without a request.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

// Origin returns the scheme and the address of a listener.
func Origin(listener net.Listener) string {
	if _, ok := listener.(*tlsListener); ok {
		return "https://" + listener.Addr().String()
	}
	return "http://" + listener.Addr().String()
}

func (t *TLS) currentConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if state := t.files.stateText(); state != t.read {
		t.read = state
		if config, err := t.files.loadConfig(); err != nil {
			t.report(fmt.Errorf("the TLS files have changed and cannot be used; the former ones stay in use: %w", err))
		} else {
			t.config = config
		}
	}
	return t.config, nil
}

func (f *TLSFiles) fileNames() []string {
	if f.ClientCA == "" {
		return []string{f.Cert, f.Key}
	}
	return []string{f.Cert, f.Key, f.ClientCA}
}

// stateText identifies the content of the files without reading it.
func (f *TLSFiles) stateText() (s string) {
	for _, name := range f.fileNames() {
		info, err := os.Stat(name)
		if err != nil {
			s += err.Error()
			continue
		}
		s += fmt.Sprintf("%d %s\n", info.Size(), info.ModTime())
	}
	return s
}

func (f *TLSFiles) loadConfig() (*tls.Config, error) {
	cert, err := readTrusted(f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readTrusted(f.Key)
	if err != nil {
		return nil, err
	}

	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}

	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		// The bounds of connections and requests are those of HTTP/1.1.
		NextProtos: []string{"http/1.1"},
		// A resumed session would skip the check of the client's certificate.
		SessionTicketsDisabled: true,
	}

	if f.ClientCA == "" {
		return config, nil
	}

	authorities, err := readTrusted(f.ClientCA)
	if err != nil {
		return nil, err
	}

	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s: %w", f.ClientCA, errNoCertificate)
	}

	return config, nil
}

// readTrusted reads a file that decides which peers the gateway trusts, or that proves the
// gateway's own identity.
func readTrusted(name string) ([]byte, error) {
	text, err := safefile.ReadTrusted(name)
	if named := (*fs.PathError)(nil); err != nil && !errors.As(err, &named) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, err
}

var errNoCertificate = errors.New("it contains no PEM certificate")
