package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// answerWithin is how long a caller waits for one answer. Nothing that is measured comes near it.
const answerWithin = 60 * time.Second

// protocol is the revision that callers speak.
const protocol = "2025-11-25"

// tokenBytes is how long the text is that makes one call differ from every other.
const tokenBytes = 32

// A door is where callers come: a host, a path, and the token they show.
type door struct {
	host   string // 127.0.0.1:PORT
	path   string // /mcp
	token  string // bearer; empty: none
	joined string // what stands before the names of tools here; empty: nothing
}

// callTool calls a kind's tool here. It returns how long the answer took to arrive, whole, and an error if there was none or it was wrong.
func (d door) callTool(k kind, call uint64, send func(name string, args map[string]any) ([]byte, error)) (time.Duration, error) {
	token := fmt.Sprintf("note-%027d", call)
	want, args := token, map[string]any{"message": token}
	if k.size > tokenBytes {
		want, args = token+fill(k.size-tokenBytes), map[string]any{"seed": token, "size": k.size}
	}

	begin := time.Now()
	message, err := send(d.joined+k.tool, args)
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	if fault := k.judge(message, []byte(want)); fault != "" {
		return 0, fmt.Errorf("%s: %.600q", fault, message)
	}
	return took, nil
}

// fill is what the text of a blob has behind its seed.
func fill(n int) string {
	const pattern = "abcdefghijklmnopqrstuvwxyz0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ."
	return strings.Repeat(pattern, n/len(pattern)+1)[:n]
}

// lastCall numbers the calls of this process.
var lastCall atomic.Uint64

// A transport is one client's connections. It shows the client's token.
type transport struct {
	*http.Transport
	token string
}

func newTransport(at door) transport {
	return transport{&http.Transport{MaxIdleConnsPerHost: 8}, at.token}
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.Transport.RoundTrip(r)
}

// A caller is one MCP session of one client whose messages are written by hand: a client library costs more than what is measured. It does
// one call after the other.
type caller struct {
	door
	http    transport
	session string
}

// openPlain opens a session that costs little.
func openPlain(at door) (client, error) {
	c := &caller{door: at, http: newTransport(at)}
	_, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, protocol), `"protocolVersion":"`+protocol+`"`)
	if err == nil && c.session == "" {
		err = errors.New("initialize opened no session")
	}
	if err == nil {
		_, err = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
	}
	if err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

func (c *caller) call(k kind) (time.Duration, error) {
	n := lastCall.Add(1)
	return c.callTool(k, n, func(name string, args map[string]any) ([]byte, error) {
		params, err := json.Marshal(map[string]any{"name": name, "arguments": args})
		if err != nil {
			return nil, err
		}
		return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, n, params), fmt.Sprintf(`"id":%d,`, n))
	})
}

// post sends a message and returns the response's message, which holds a mark. With an empty mark there is none.
func (c *caller) post(message, mark string) ([]byte, error) {
	status, body, err := c.exchange(http.MethodPost, message)
	switch {
	case err != nil:
		return nil, err
	case mark == "" && status == http.StatusAccepted:
		return nil, nil
	case status != http.StatusOK:
		return nil, fmt.Errorf("status %d: %.300q", status, body)
	}
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("data:"))); bytes.Contains(line, []byte(mark)) {
			return line, nil
		}
	}
	return nil, fmt.Errorf("no message has %s: %.300q", mark, body)
}

// exchange makes a request and reads its response to the end.
func (c *caller) exchange(method, message string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+c.path, strings.NewReader(message))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", protocol)
	}

	answer, err := c.http.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	if c.session == "" {
		c.session = answer.Header.Get("Mcp-Session-Id")
	}
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}

func (c *caller) end() error {
	defer c.hangUp()
	status, body, err := c.exchange(http.MethodDelete, "")
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("DELETE was answered with status %d: %.300q", status, body)
	}
	return err
}

func (c *caller) hangUp() { c.http.CloseIdleConnections() }

// An sdkCaller is a client as they are: that of the Go SDK. Most of what it measures is itself, and an upstream of the same SDK.
type sdkCaller struct {
	door
	http    transport
	session *sdk.ClientSession
}

// openSDK opens a session of the SDK.
func openSDK(at door) (client, error) {
	c := &sdkCaller{door: at, http: newTransport(at)}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	var err error
	c.session, err = sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: "http://" + at.host + at.path, HTTPClient: &http.Client{Transport: c.http}, DisableStandaloneSSE: true},
		&sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *sdkCaller) call(k kind) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	return c.callTool(k, lastCall.Add(1), func(name string, args map[string]any) ([]byte, error) {
		got, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			return nil, err
		}
		return json.Marshal(got)
	})
}

func (c *sdkCaller) end() error { return c.session.Close() }
func (c *sdkCaller) hangUp()    { c.http.CloseIdleConnections() }
