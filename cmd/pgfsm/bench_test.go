package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	benchTools = `{"tools":[{"name":"fetch","description":"Fetch a policy by its id.","inputSchema":{"type":"object",` +
		`"properties":{"policy_id":{"type":"string"}},"required":["policy_id"]},"outputSchema":{"type":"object",` +
		`"properties":{"title":{"type":"string"},"body":{"type":"string"}},"additionalProperties":false}}]}`
	benchResult = `{"content":[{"type":"text","text":"Log Retention"}],"structuredContent":{"title":"Log Retention",` +
		`"body":"Security logs are kept for 400 days. Access logs are kept for 90 days."}}`
	benchPlan    = `{"type":"call_tool","server":"kb","tool":"fetch","args":{"policy_id":"policy-002"}}`
	benchSummary = `{"items":[{"claim":"Security logs are kept for 400 days.","evidence":"Security logs are kept for 400 days."}]}`
)

// benchWorld is an endpoint and a server that know how much time they took themselves.
type benchWorld struct {
	model, server *httptest.Server
	own           atomic.Int64 // nanoseconds
}

func (b *benchWorld) timed(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		h(w, r)
		b.own.Add(int64(time.Since(start)))
	}
}

// newBenchWorld makes an endpoint that thinks for a while about each completion, and a server with one tool.
func newBenchWorld(b *testing.B, thinks time.Duration) *benchWorld {
	world := &benchWorld{}
	world.model = httptest.NewServer(world.timed(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			b.Error(err)
		}
		content := benchPlan
		if strings.Contains(asked.Messages[0].Content, "summarizer") {
			content = benchSummary
		}
		time.Sleep(thinks)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,`+
			`"finish_reason":"stop","message":{"role":"assistant","content":%q}}]}`, content)
	}))
	b.Cleanup(world.model.Close)
	p := mcptest.New(b, func(method string) string {
		return map[string]string{"initialize": mcptest.Hello, "tools/list": benchTools, "tools/call": benchResult}[method]
	})
	world.server = httptest.NewServer(world.timed(p.ServeHTTP))
	b.Cleanup(world.server.Close)
	return world
}

// naive does the same without anything in between.
func (b *benchWorld) naive(tb *testing.B) {
	ctx := tb.Context()
	ask := func(role string) {
		resp, err := http.Post(b.model.URL+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":"Summarize policy-002"}]}`, role)))
		if err != nil {
			tb.Fatal(err)
		}
		defer resp.Body.Close()
		var answer any
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			tb.Fatal(err)
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "naive", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: b.server.URL + "/mcp", DisableStandaloneSSE: true}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ListTools(ctx, nil); err != nil {
		tb.Fatal(err)
	}
	ask("You are a planner.")
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "fetch", Arguments: map[string]any{"policy_id": "policy-002"}}); err != nil {
		tb.Fatal(err)
	}
	ask("You are a summarizer.")
}

// BenchmarkRunWithModel measures pgfsm run, whole: configuration, rules, discovery, plan, gates, call, summary, trace on
// disk. "over-own" is its time over that of endpoint and server, "naive/own" the same for an agent without gates and
// records, in turns with it; "added-ms" is what is left of a run without endpoint and server.
func BenchmarkRunWithModel(b *testing.B) {
	for _, thinks := range []time.Duration{0, 100 * time.Millisecond, 500 * time.Millisecond} {
		b.Run(fmt.Sprintf("model-thinks-%s", thinks), func(b *testing.B) {
			world := newBenchWorld(b, thinks)
			dir := cli.Folder(b, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {kb: {type: http, url: %q}}\nallowlist: allowlist.json\n"+
				"planner: {mode: llm, llm: {base_url: %q, model: m}}\n", world.server.URL+"/mcp", world.model.URL+"/v1"),
				"allowlist.json", `{"kb": ["fetch"]}`)
			config := filepath.Join(dir, "pgfsm.yaml")
			var ours, ourOwn, theirs, theirOwn time.Duration
			for b.Loop() {
				world.own.Store(0)
				start := time.Now()
				if r := command(b.Context(), nil, "run", "--json", "-c", config, "Summarize policy-002"); r.Member("/type") != "tool_result_with_summary" {
					b.Fatalf("run = %d %s %s", r.Code, r.Stdout, r.Stderr)
				}
				ours, ourOwn = ours+time.Since(start), ourOwn+time.Duration(world.own.Swap(0))
				start = time.Now()
				world.naive(b)
				theirs, theirOwn = theirs+time.Since(start), theirOwn+time.Duration(world.own.Swap(0))
			}
			b.ReportMetric(float64(ours)/float64(ourOwn), "over-own")
			b.ReportMetric(float64(theirs)/float64(theirOwn), "naive/own")
			b.ReportMetric(float64(ours)/float64(theirs), "over-naive")
			b.ReportMetric(float64(ours-ourOwn)/float64(time.Millisecond)/float64(b.N), "added-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
