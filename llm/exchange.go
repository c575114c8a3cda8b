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

	"pgfsm/loopback"
	"pgfsm/policy/secret"
)

const (
	// MaxCompletionBytes bounds the body of a response.
	MaxCompletionBytes = 4 << 20
	// maxPiece is how many bytes at the end of a truncated response may be the beginning of a secret: 16 times the longest secret, 64 KiB, because JSON may
	// need six bytes for each byte, and quote it again.
	maxPiece = 1 << 20
	// maxHTTPHeader bounds the headers of a response.
	maxHTTPHeader = 64 << 10
)

// newTransport connects to one endpoint. Each request has its own connection: on a reused connection, net/http repeats a request without an answer.
func newTransport(base *url.URL, secret bool) *http.Transport {
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil && secret && base.Scheme == "http" && !loopback.Addr(conn.RemoteAddr()) {
				conn.Close()
				return nil, fmt.Errorf("%s is not this machine; the API key would travel in clear text", base.Host)
			}
			return conn, err
		},
		DisableKeepAlives:      true,
		DisableCompression:     true, // the limit counts the received bytes
		MaxResponseHeaderBytes: maxHTTPHeader,
	}
}

// proxy uses HTTPS_PROXY and NO_PROXY for https to other machines: the proxy sees ciphertext. Plain http and loopback
// never go through a proxy.
func proxy(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" || loopback.Host(req.URL.Hostname()) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// errRepeated stops a library that sends a request again.
var errRepeated = errors.New("a second request in one exchange was refused")

// wire makes the HTTP exchange for the OpenAI library. It sends the library's body with its own headers only, and stores the response. The library gets a
// fixed harmless answer, so that it cannot follow a redirect, repeat the request, or decode anything.
type wire struct {
	next    http.RoundTripper
	secrets *secret.Masker // a truncated response must not contain a part of one
	begun   bool
	got     Exchange
	err     error // why got is not a whole response; nil if it is one
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	if w.begun {
		return nil, errRepeated
	}
	w.begun = true
	if w.got.Sent, w.err = io.ReadAll(req.Body); w.err != nil {
		return nil, w.err
	}
	out := req.Clone(req.Context())
	out.Body, out.GetBody = io.NopCloser(bytes.NewReader(w.got.Sent)), nil
	out.Header = http.Header{"User-Agent": {"pgfsm"}, "Accept-Encoding": {"identity"}}
	for _, name := range []string{"Accept", "Authorization", "Content-Type"} {
		if v := req.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	resp, err := w.next.RoundTrip(out)
	if err != nil {
		w.err = err
		return nil, err
	}
	defer resp.Body.Close()
	if w.err = w.take(resp); w.err != nil {
		return nil, w.err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

// take reads the response.
func (w *wire) take(resp *http.Response) error {
	w.got.Status = resp.StatusCode
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return errors.New("it wants to speak another protocol") // and a read from it would end with the connection only
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxCompletionBytes+1))
	if w.got.Received = body; len(body) > MaxCompletionBytes {
		w.got.Received = beginning(body, w.secrets)
	}
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case err != nil:
		return fmt.Errorf("the response breaks off: %w", err)
	case len(body) > MaxCompletionBytes:
		return fmt.Errorf("the response has more than %d bytes", MaxCompletionBytes)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Errorf("the response is encoded as %q, which was not asked for", encoding)
	}
	return nil
}

// beginning returns the stored part of a response that is too long. It masks secrets before it truncates, because a part of a secret cannot be found.
// Reading also stopped somewhere, so it drops the last bytes, which may be a part of a secret.
func beginning(body []byte, secrets *secret.Masker) []byte {
	clean := secrets.Bytes(body)
	return clean[:min(max(len(clean)-maxPiece, 0), MaxCompletionBytes)]
}
