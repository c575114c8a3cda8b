package upstream_test

import (
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/upstream"
)

const toolList = `{"tools":[{"name":"Bash","inputSchema":{"type":"object"}}]}`

// A client's tools are listed from its file. Every way to call one is refused.
func TestToolsOfAClient(t *testing.T) {
	u := upstream.New([]upstream.Server{{Name: "claude", Type: upstream.TypeClient, ToolList: []byte(toolList)}},
		upstream.Limits{}, upstream.Info{}, nil)
	defer u.Close()
	c := u.Client("ann")
	defer c.Close()

	listed := c.List(t.Context())
	if len(listed) != 1 || listed[0].Status != upstream.StatusUp || len(listed[0].Pages) != 1 ||
		string(listed[0].Pages[0]) != toolList || listed[0].Number == 0 {
		t.Fatalf("List() = %+v, want the tools of the file", listed)
	}
	if cached := u.ClientTools("claude"); cached == nil || cached.Number != listed[0].Number {
		t.Errorf("ClientTools() = %+v, want the listing that List returns", cached)
	}
	if c.Changed("claude", listed[0].Number) {
		t.Error("Changed() = true, want false: the file is read once")
	}

	args, err := canonical.ReadObject([]byte(`{}`))
	check.NoError(t, err)
	got := c.Call(t.Context(), upstream.Call{Server: "claude", Tool: "Bash", Arguments: args, RunID: "1",
		Listing: listed[0].Number})
	if got.Code != upstream.CodeClientTool || got.Effect != upstream.EffectNotSent {
		t.Errorf("Call() = %+v, want the code client_tool and the effect not_sent", got)
	}
	if l, err := u.Link(t.Context(), "claude", upstream.Peer{}); l != nil || err == nil ||
		err.(*upstream.LinkError).Code != upstream.CodeClientTool {
		t.Errorf("Link() = %v, %v, want no link and the code client_tool", l, err)
	}
}

func TestOtherServersHaveNoClientTools(t *testing.T) {
	u := upstream.New([]upstream.Server{{Name: "docs", Type: upstream.TypeHTTP, URL: "http://127.0.0.1:1/mcp"}},
		upstream.Limits{}, upstream.Info{}, nil)
	defer u.Close()
	for _, name := range []string{"docs", "unknown"} {
		if got := u.ClientTools(name); got != nil {
			t.Errorf("ClientTools(%q) = %+v, want nil", name, got)
		}
	}
}

// A reload with another file of tools replaces the server, and one with the same file keeps it.
func TestReplaceOfAClientsTools(t *testing.T) {
	server := upstream.Server{Name: "claude", Type: upstream.TypeClient, ToolList: []byte(toolList)}
	u := upstream.New([]upstream.Server{server}, upstream.Limits{}, upstream.Info{}, nil)
	defer u.Close()
	if same := u.Replace([]upstream.Server{server}, upstream.Limits{}); !same.Shares(u, "claude") {
		t.Error("the server with the same tools is another one, want it shared")
	}
	server.ToolList = []byte(`{"tools":[]}`)
	if other := u.Replace([]upstream.Server{server}, upstream.Limits{}); other.Shares(u, "claude") {
		t.Error("the server with other tools is shared, want another one")
	}
}
