package demo_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/demo"
)

// ways are the transports and the protocol revisions that every test of the tools goes through.
var ways = []struct{ name, path, revision string }{
	{"sse", "sse", "2024-11-05"},
	{"http-with-sessions", "mcp", "2025-11-25"},
	{"http-without-sessions", "mcp", "2026-07-28"},
}

var free = []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}

func mustListen(tb testing.TB) *demo.Fleet {
	tb.Helper()
	f, err := demo.Listen(tb.Context(), free)
	check.NoError(tb, err)
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return f
}

func transport(url string) sdk.Transport {
	if strings.HasSuffix(url, "/sse") {
		return &sdk.SSEClientTransport{Endpoint: url}
	}
	return &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1}
}

func mustConnect(tb testing.TB, url, revision string) *sdk.ClientSession {
	tb.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(tb.Context(), transport(url), &sdk.ClientSessionOptions{ProtocolVersion: revision})
	check.NoError(tb, err)
	tb.Cleanup(func() { cs.Close() })
	return cs
}

func mustCall(tb testing.TB, cs *sdk.ClientSession, tool, args string) *sdk.CallToolResult {
	tb.Helper()
	res, err := cs.CallTool(context.WithoutCancel(tb.Context()), &sdk.CallToolParams{
		Name: tool, Arguments: jsontext.Value(args),
	})
	if err != nil {
		tb.Fatalf("CallTool(%s, %s) = %v", tool, args, err)
	}
	return res
}

// text is the one text block of a result.
func text(tb testing.TB, res *sdk.CallToolResult) string {
	tb.Helper()
	if len(res.Content) != 1 {
		tb.Fatalf("result has %d content blocks, want 1", len(res.Content))
	}
	block, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		tb.Fatalf("content block is a %T, want text", res.Content[0])
	}
	return block.Text
}

func mustTools(tb testing.TB, cs *sdk.ClientSession) []*sdk.Tool {
	tb.Helper()
	var tools []*sdk.Tool
	for tool, err := range cs.Tools(tb.Context(), nil) {
		check.NoError(tb, err)
		tools = append(tools, tool)
	}
	return tools
}

var catalog = []struct {
	server string
	tools  []string // the first two only read
}{
	{demo.SharePoint, []string{"fetch_sharepoint_doc", "search_sharepoint", "delete_sharepoint_doc"}},
	{demo.ServiceNow, []string{"get_ticket", "search_servicenow_tickets", "close_ticket"}},
	{demo.PolicyKB, []string{"fetch_policy_entry", "search_policy_kb", "delete_policy_entry"}},
}

func TestDeclarations(t *testing.T) {
	f := mustListen(t)
	for _, c := range catalog {
		t.Run(c.server, func(t *testing.T) {
			cs := mustConnect(t, f.URL(c.server, "mcp"), "2025-11-25")
			first, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(first.Tools) != 2 || first.NextCursor == "" {
				t.Errorf("ListTools(first page) = %+v, %v, want 2 tools and a cursor", first, err)
			}

			var names []string
			for _, tool := range mustTools(t, cs) {
				names = append(names, tool.Name)
				only := slices.Index(c.tools, tool.Name) < 2
				if tool.Annotations.ReadOnlyHint != only || *tool.Annotations.DestructiveHint == only {
					t.Errorf("annotations of %s = %+v, want that it only reads: %t", tool.Name, tool.Annotations, only)
				}
				checkDeclaration(t, tool)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.tools)), slices.Sorted(slices.Values(names))); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func checkDeclaration(t *testing.T, tool *sdk.Tool) {
	t.Helper()
	if tool.Title == "" || tool.Description == "" || tool.Annotations.Title != tool.Title {
		t.Errorf("%s: title %q, annotated %q, description %q: want all, titles alike",
			tool.Name, tool.Title, tool.Annotations.Title, tool.Description)
	}
	for kind, schema := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
		root, _ := schema.(map[string]any)
		if root["type"] != "object" || root["additionalProperties"] != false {
			t.Errorf("%s: %sSchema = %v, want a closed object", tool.Name, kind, schema)
		}
	}
}

func TestResourceAndPrompt(t *testing.T) {
	f := mustListen(t)
	tests := []struct{ server, uri, id, prompt, argument string }{
		{demo.SharePoint, "sharepoint://documents", "doc-001", "summarize_document", "doc_id"},
		{demo.ServiceNow, "servicenow://tickets", "INC0010001", "triage_ticket", "ticket_id"},
		{demo.PolicyKB, "policykb://policies", "policy-002", "explain_policy", "policy_id"},
	}
	for _, tt := range tests {
		t.Run(tt.server, func(t *testing.T) {
			cs := mustConnect(t, f.URL(tt.server, "mcp"), "2025-11-25")
			res, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: tt.uri})
			if err != nil || len(res.Contents) != 1 || !strings.Contains(res.Contents[0].Text, tt.id+"  ") {
				t.Errorf("ReadResource(%s) = %+v, %v, want a line for %s", tt.uri, res, err, tt.id)
			}
			get := func(args map[string]string) (*sdk.GetPromptResult, error) {
				return cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: tt.prompt, Arguments: args})
			}
			prompt, err := get(map[string]string{tt.argument: tt.id})
			if err != nil || len(prompt.Messages) != 1 {
				t.Fatalf("GetPrompt(%s) = %+v, %v, want one message", tt.prompt, prompt, err)
			}
			if got := prompt.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(got, tt.id) {
				t.Errorf("GetPrompt(%s) = %q, want it to name %s", tt.prompt, got, tt.id)
			}
			if got, err := get(nil); err == nil {
				t.Errorf("GetPrompt(%s) without an argument = %+v, want an error", tt.prompt, got)
			}
		})
	}
}

// calls are one or more for each tool, with what the text must contain. Those that change something come last.
var calls = []struct{ server, tool, args, want string }{
	{demo.SharePoint, "search_sharepoint", `{"query":"PII Logging"}`, `"doc_id":"doc-001"`},
	{demo.SharePoint, "search_sharepoint", `{"query":"no such thing"}`, `"count":0,"hits":[]`},
	{demo.SharePoint, "fetch_sharepoint_doc", `{"doc_id":"doc-001"}`, `"title":"PII Logging Standard"`},
	{demo.SharePoint, "fetch_sharepoint_doc", `{"doc_id":"doc-404"}`, `{"doc":null,"status":"NOT_FOUND"}`},
	{demo.ServiceNow, "search_servicenow_tickets", `{"query":"vpn"}`, `"ticket_id":"INC0010001"`},
	{demo.ServiceNow, "get_ticket", `{"ticket_id":"INC0010001"}`, `"state":"In Progress"`},
	{demo.ServiceNow, "get_ticket", `{"ticket_id":"INC9999999"}`, `{"status":"NOT_FOUND","ticket":null}`},
	{demo.PolicyKB, "search_policy_kb", `{"query":"PII Logging"}`, `"policy_id":"policy-004"`},
	{demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`, `kept for 400 days`},

	{demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999"}`, `{"doc_id":"doc-999","status":"DELETED"}`},
	{demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999"}`, `{"doc_id":"doc-999","status":"NOT_FOUND"}`},
	{demo.SharePoint, "fetch_sharepoint_doc", `{"doc_id":"doc-999"}`, `{"doc":null,"status":"NOT_FOUND"}`},
	{demo.ServiceNow, "close_ticket", `{"ticket_id":"INC0010004"}`, `{"status":"CLOSED","ticket_id":"INC0010004"}`},
	{demo.ServiceNow, "close_ticket", `{"ticket_id":"INC0010001","resolution":"Rolled back."}`, `"status":"CLOSED"`},
	{demo.ServiceNow, "get_ticket", `{"ticket_id":"INC0010001"}`, `"resolution":"Rolled back.","state":"Closed"`},
	{demo.ServiceNow, "close_ticket", `{"ticket_id":"INC9999999"}`, `"status":"NOT_FOUND"`},
	{demo.PolicyKB, "delete_policy_entry", `{"policy_id":"policy-003"}`, `"status":"DELETED"`},
	{demo.PolicyKB, "search_policy_kb", `{"query":"credential"}`, `"count":0`},
}

func TestEachToolOverEachTransport(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := mustListen(t)
			sessions := map[string]*sdk.ClientSession{}
			types := map[string]*jsonschema.Schema{}
			for _, c := range catalog {
				cs := mustConnect(t, f.URL(c.server, way.path), way.revision)
				if got := cs.InitializeResult().ProtocolVersion; got != way.revision {
					t.Fatalf("negotiated %s, want %s", got, way.revision)
				}
				sessions[c.server] = cs
				for _, tool := range mustTools(t, cs) {
					types[tool.Name] = mustCompile(t, tool.OutputSchema)
				}
			}
			called := map[string]bool{}
			for _, call := range calls {
				res := mustCall(t, sessions[call.server], call.tool, call.args)
				called[call.tool] = true
				checkResult(t, call.tool+" "+call.args, res, types[call.tool], call.want)
			}
			if len(called) != len(types) {
				t.Errorf("tools called = %d, want %d", len(called), len(types))
			}
			checkCalls(t, f)
		})
	}
}

func mustCompile(tb testing.TB, schema any) *jsonschema.Schema {
	tb.Helper()
	c := jsonschema.NewCompiler()
	check.NoError(tb, c.AddResource("schema.json", schema))
	s, err := c.Compile("schema.json")
	check.NoError(tb, err)
	return s
}

func checkResult(t *testing.T, call string, res *sdk.CallToolResult, typ *jsonschema.Schema, want string) {
	t.Helper()
	got := text(t, res)
	if res.IsError || !strings.Contains(got, want) {
		t.Errorf("%s = %s (error %t), want %s", call, got, res.IsError, want)
	}
	if err := typ.Validate(res.StructuredContent); err != nil {
		t.Errorf("%s: structured content: %v", call, err)
	}
	var same any
	check.NoError(t, json.Unmarshal([]byte(got), &same))
	if diff := cmp.Diff(res.StructuredContent, same); diff != "" {
		t.Errorf("%s: (-structured +text):\n%s", call, diff)
	}
	if strings.Contains(want, "NOT_FOUND") && len(got) > 60 {
		t.Errorf("%s = %s, want no content beside NOT_FOUND", call, got)
	}
}

// checkCalls holds what the servers recorded to [calls].
func checkCalls(t *testing.T, f *demo.Fleet) {
	t.Helper()
	for _, s := range f.Servers() {
		var got, want []string
		for _, c := range s.Calls() {
			got = append(got, c.Name+" "+string(c.Arguments))
		}
		for _, c := range calls {
			if c.server == s.Name() {
				want = append(want, c.tool+" "+c.args)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Calls() of %s (-want +got):\n%s", s.Name(), diff)
		}
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	f := mustListen(t)
	tests := []struct{ name, server, tool, args string }{
		{"number-for-id", demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":123}`},
		{"id-missing", demo.SharePoint, "delete_sharepoint_doc", `{}`},
		{"other-key", demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999","force":true}`},
		{"null", demo.PolicyKB, "delete_policy_entry", `{"policy_id":null}`},
		{"blank-query", demo.PolicyKB, "search_policy_kb", `{"query":"  "}`},
		{"empty-resolution", demo.ServiceNow, "close_ticket", `{"ticket_id":"INC0010001","resolution":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := mustCall(t, mustConnect(t, f.URL(tt.server, "mcp"), "2025-11-25"), tt.tool, tt.args)
			if !res.IsError || res.StructuredContent != nil {
				t.Errorf("%s(%s) = %s (error %t), want a tool error", tt.tool, tt.args, text(t, res), res.IsError)
			}
		})
	}

	cs := mustConnect(t, f.URL(demo.SharePoint, "mcp"), "2025-11-25")
	if got := text(t, mustCall(t, cs, "fetch_sharepoint_doc", `{"doc_id":"doc-999"}`)); !strings.Contains(got, `"status":"OK"`) {
		t.Errorf("fetch(doc-999) = %s, want that nothing was deleted", got)
	}
	if n := len(f.Servers()[0].Calls()); n != 4 {
		t.Errorf("calls that reached %s = %d, want 4: refused ones too", demo.SharePoint, n)
	}
}
