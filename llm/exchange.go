package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"pgfsm/internal/web/loopback"
)

const (
	// MaxCompletionBytes bounds the body of a response.
	MaxCompletionBytes = 4 << 20
	// maxHTTPHeader bounds the headers of a response.
	maxHTTPHeader = 64 << 10
)

// newTransport connects to one endpoint. It is used without an [http.Client], which would follow
// redirects. Each request has its own connection: on a reused connection, net/http repeats a
// request without an answer.
func newTransport(base *url.URL, secret bool) *http.Transport {
	return &http.Transport{
		Proxy: loopback.ProxyFor,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			if secret && base.Scheme == "http" && !loopback.Addr(conn.RemoteAddr()) {
				conn.Close()
				return nil, fmt.Errorf("%s is not this machine; the API key would travel in clear text", base.Host)
			}
			return conn, nil
		},
		DisableKeepAlives:      true,
		DisableCompression:     true, // the limit counts the received bytes
		MaxResponseHeaderBytes: maxHTTPHeader,
	}
}

// newRequest makes the one request of an exchange. Without GetBody, net/http cannot send the body a
// second time.
func (m *Model) newRequest(ctx context.Context, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.where, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil
	req.Header = http.Header{
		"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"},
		"User-Agent": {"pgfsm"},
	}
	if m.key != "" {
		req.Header.Set("Authorization", "Bearer "+m.key)
	}
	return req, nil
}

// readResponse reads the response. A part of a response that is too long is not kept: it might end
// in a part of a secret, which cannot be masked.
func (x *Exchange) readResponse(resp *http.Response) error {
	x.Status = resp.StatusCode
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// And a read from it would end with the connection only.
		return errors.New("it wants to speak another protocol")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxCompletionBytes+1))
	if len(body) > MaxCompletionBytes {
		return fmt.Errorf("the response has more than %d bytes", MaxCompletionBytes)
	}
	x.Received = body
	if err != nil {
		return fmt.Errorf("the response breaks off: %w", err)
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fmt.Errorf("the response is encoded as %q, which was not asked for", encoding)
	}
	return nil
}
