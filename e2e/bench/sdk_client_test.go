package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A sdkCaller is a client as they are: that of the Go SDK. Most of what it measures is itself, and an upstream of the same SDK.
type sdkCaller struct {
	door
	number, last uint64
	transport    *http.Transport
	session      *sdk.ClientSession
	asked        kind
}

// sdkClient opens a session of the SDK.
func sdkClient(at door) (client, error) {
	c := &sdkCaller{door: at, number: callers.Add(1), last: firstID, transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	var err error
	c.session, err = sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: "http://" + at.host + at.path, HTTPClient: &http.Client{Transport: c}, DisableStandaloneSSE: true},
		&sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// RoundTrip shows the token.
func (c *sdkCaller) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.transport.RoundTrip(r)
}

func (c *sdkCaller) revive() error  { return nil }
func (c *sdkCaller) prepare(k kind) { c.asked = k }
func (c *sdkCaller) end() error     { return c.session.Close() }

func (c *sdkCaller) hangUp() {
	c.transport.CloseIdleConnections()
	go c.session.Close() // it says good-bye, for which nobody waits
}

func (c *sdkCaller) call() (time.Duration, error) {
	c.last++
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	want := text(c.number, c.last)
	args := map[string]any{"message": string(want)}
	if c.asked.size > tokenBytes {
		args = map[string]any{"seed": string(want), "size": c.asked.size}
		want = append(want, fill(c.asked.size-tokenBytes)...)
	}
	begin := time.Now()
	got, err := c.session.CallTool(ctx, &sdk.CallToolParams{Name: c.tool(c.asked), Arguments: args})
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	message, err := json.Marshal(got)
	if err != nil {
		return 0, err
	}
	if fault := c.asked.judge(message, want); fault != "" {
		return 0, fmt.Errorf("%s: %.600q", fault, message)
	}
	return took, nil
}
