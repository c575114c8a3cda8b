package hook

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

	"github.com/go-json-experiment/json"

	"pgfsm/internal/visible"
	"pgfsm/internal/web/loopback"
)

// maxAnswer is the longest answer of the gateway in bytes.
const maxAnswer = 64 << 10

const (
	// SocketPrefix begins a gateway that is a unix socket.
	SocketPrefix = "unix:"
	// SocketHost is the Host header of requests to a unix socket.
	SocketHost = "localhost"
)

// post sends an event to the gateway and returns its answer.
func post(ctx context.Context, o options, event Event) (Answer, error) {
	body, err := encode(event)
	if err != nil {
		return Answer{}, err
	}
	client, address, err := newClient(o.gateway)
	if err != nil {
		return Answer{}, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("--gateway: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+o.token)

	response, err := client.Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Answer{}, fmt.Errorf("the gateway did not answer within %s", o.timeout)
	case err != nil:
		return Answer{}, fmt.Errorf("the gateway cannot be asked: %w; start it with pgfsm serve -c pgfsm.yaml", err)
	}
	defer response.Body.Close()
	return readAnswer(response)
}

// encode returns the body of a request. An event that is too long loses its result, so that the
// report of the call arrives.
func encode(event Event) ([]byte, error) {
	body, err := json.Marshal(event)
	if err == nil && len(body) > MaxBytes && event.Result != nil {
		event.Result = nil
		body, err = json.Marshal(event)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the event cannot be encoded: %w", err)
	case len(body) > MaxBytes:
		return nil, fmt.Errorf("the event is longer than %d bytes", MaxBytes)
	}
	return body, nil
}

func readAnswer(response *http.Response) (a Answer, err error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return a, fmt.Errorf("the gateway does not accept the token (status %d): it is unknown, expired, revoked or of another role; %s",
			response.StatusCode, tokenRemedy)
	case response.StatusCode != http.StatusOK:
		return a, fmt.Errorf("the gateway answered with status %d: %s", response.StatusCode,
			visible.Quote(visible.Clip(string(text), maxQuoted)))
	case err != nil:
		return a, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	case len(text) > maxAnswer:
		return a, fmt.Errorf("the gateway's answer is longer than %d bytes", maxAnswer)
	}

	var read struct {
		Answer  `json:",inline"`
		Allowed *bool `json:"allowed"`
	}
	if err := json.Unmarshal(text, &read); err != nil || read.Allowed == nil {
		return a, errors.New("the gateway's answer is not one of this version")
	}
	read.Answer.Allowed = *read.Allowed
	return read.Answer, nil
}

// newClient returns a client for a gateway, and the address of its endpoint. The client follows no
// redirects and uses no proxy, because the token is for the gateway only.
func newClient(gateway string) (*http.Client, string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	if socket, isSocket := strings.CutPrefix(gateway, SocketPrefix); isSocket {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
		return client, "http://" + SocketHost + Path, nil
	}

	u, err := url.Parse(gateway)
	plain := err == nil && u.Scheme == "http"
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, "", errors.New("--gateway is not a URL such as http://127.0.0.1:8787, or unix: and the path of a socket")
	case u.Scheme != "https" && !plain:
		return nil, "", errors.New("--gateway begins with none of unix:, https:// and http://")
	case plain && !loopback.Host(u.Hostname()):
		return nil, "", errors.New("--gateway must begin with https://, because the token would cross the network unencrypted")
	}
	if plain {
		transport.DialContext = dialLoopback
	}
	return client, strings.TrimSuffix(u.String(), "/") + Path, nil
}

// dialLoopback connects only to this machine: a resolver may map localhost elsewhere.
func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && !loopback.Addr(conn.RemoteAddr()) {
		return nil, errors.Join(fmt.Errorf("%s is another machine", address), conn.Close())
	}
	return conn, err
}
