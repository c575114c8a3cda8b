//go:build linux

package partition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/traces/ledger"
)

// The tools of the server. Policies allow, count or hold their calls.
const (
	toolFree    = "free"    // allowed
	toolCounted = "counted" // allowed while the actor has made fewer calls than the argument limit
	toolHeld    = "held"    // held for one approver
	toolTwo     = "two"     // held for two
	toolBrief   = "brief"   // held for one, for a few seconds
)

var tools = []string{toolFree, toolCounted, toolHeld, toolTwo, toolBrief}

// arguments are those of every call. The operation names it: no two clients ask for the same call.
type arguments struct {
	Op    string `json:"op"`
	Limit int    `json:"limit"`
}

// An upstream is the server behind all gateways. It notes each call that arrives, and looks whether its intent was recorded by then.
type upstream struct {
	*httptest.Server
	t     *testing.T
	look  func(context.Context, func(ledger.Reader) error) error // reads the ledger
	moved atomic.Int64                                           // counts changes of what look reads: it may be behind at that time
	now   func() int64

	mu       sync.Mutex
	arrivals map[string][]int64 // when calls arrived, by operation
}

func newUpstream(t *testing.T, now func() int64) *upstream {
	u := &upstream{t: t, now: now, arrivals: make(map[string][]int64)}
	server := sdk.NewServer(&sdk.Implementation{Name: "upstream", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"op":{"type":"string"},"limit":{"type":"integer"}},"required":["op","limit"]}`)
	for _, name := range tools {
		server.AddTool(&sdk.Tool{Name: name, Description: "Says that it was called.", InputSchema: schema}, u.called)
	}
	u.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) called(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	at := u.now()
	var args arguments
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	u.mu.Lock()
	u.arrivals[args.Op] = append(u.arrivals[args.Op], at)
	n := len(u.arrivals[args.Op])
	u.mu.Unlock()
	if err := u.intended(ctx, req.Params.Name, args.Op, n); err != nil {
		u.t.Error(err)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: args.Op}}}, nil
}

// errUnintended means that a call arrived, and nothing that was committed says that it would.
var errUnintended = errors.New("a call arrived without a recorded intent")

// intended returns an error unless as many runs with the operation were recorded as sent as calls have arrived. A read that fails, or one that may
// have been made elsewhere than the write, says nothing.
func (u *upstream) intended(ctx context.Context, tool, op string, arrived int) error {
	for end := time.Now().Add(askWithin); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		before := u.moved.Load()
		sent := 0
		err := u.look(ctx, func(r ledger.Reader) error {
			sent = 0
			for q, err := range r.Runs(ledger.Filter{Tool: tool, Text: `"` + op + `"`, Newest: true, Limit: arrived + 2}) {
				if err != nil {
					return err
				}
				if q.Sent != "" {
					sent++
				}
			}
			return nil
		})
		switch {
		case err != nil || u.moved.Load() != before || before%2 != 0:
		case sent < arrived:
			return fmt.Errorf("%w: %s %s: %d arrived, %d are recorded", errUnintended, tool, op, arrived, sent)
		default:
			return nil
		}
	}
	return nil // the checks at the end look again
}
