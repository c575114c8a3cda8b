package main

import (
	"errors"
	"fmt"
	"net"

	"pgfsm/internal/config"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
)

// openTLS reads the files of serve.tls. It returns nil if there are none. If changed files cannot be used later, it calls report.
func openTLS(files config.TLS, report func(error)) (*web.TLS, error) {
	if files.Cert == "" {
		return nil, nil
	}
	t, err := web.NewTLS(web.TLSFiles(files), report)
	if err != nil {
		return nil, fmt.Errorf("serve.tls: %w", err)
	}
	return t, nil
}

var errNoURL = errors.New("other machines can reach this address: set serve.public_url for the gateway, or serve.admin_url for the admin address")

// listen opens a listener. An address that other machines can reach needs TLS and a URL.
func listen(secured *web.TLS, address, url string) (net.Listener, error) {
	if secured == nil {
		return loopback.Listen(address)
	}
	on, err := secured.Listen(address)
	if err == nil && url == "" && !loopback.Addr(on.Addr()) {
		return nil, errors.Join(errNoURL, on.Close())
	}
	return on, err
}
