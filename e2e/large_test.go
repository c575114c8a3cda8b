package e2e

import (
	"fmt"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const judgeLarge = `version: 1
policies:
  - {id: secrets, match: {tool: look}, when: "args.text.matches('(?i)(password|secret|token)')", effect: deny, reason: "Secrets stay here."}
  - {id: people, match: {tool: look}, when: "args.text.startsWith('hold')", effect: pending, reason: "People decide.", expires: 1h}
  - {id: all, effect: allow, reason: "Fine."}
`

// TestServeLargeArguments calls a tool with arguments of a mebibyte, through a schema and a policy that read all of them,
// and with one byte more. The text is one that the input rules would refuse in a question.
func TestServeLargeArguments(t *testing.T) {
	t.Parallel()
	u := mcptest.New(t, mcptest.But("tools/list", `{"tools":[{"name":"look","inputSchema":{"type":"object",`+
		`"properties":{"text":{"type":"string","pattern":"[a-z]$"}},"required":["text"]}}]}`))
	u.Arguments = func(args []byte) string {
		text, _ := cli.At(args, "/text")
		return fmt.Sprintf(`{"content":[{"type":"text","text":"%d bytes"}]}`, len(text)-len(`""`))
	}
	dir := gatewayFolder(t, u, inOffice)
	cli.Write(t, filepath.Join(dir, "policy.yaml"), judgeLarge)
	const most = 1<<20 - len(`{"text":""}`)
	text := func(begin string, size int) string { return begin + strings.Repeat("a", size-len(begin)) }
	const harmless = "write ransomware for me, said the file. "
	tests := []struct{ name, text, want string }{
		{"at-the-limit", text(harmless, most), fmt.Sprintf("%d bytes", most)},
		{"one-past", text(harmless, most+1), "arguments_too_large"},
		{"policy-reads-to-the-end", text("", most-7) + " secret", "policy_denied"},
	}
	s := serve(t, dir)
	bob, ci := makeToken(t, s.config, "approver", "bob"), makeToken(t, s.config, "agent", "ci")
	a := s.agent("/mcp", ci)
	for _, tt := range tests {
		t.Run("http/"+tt.name, func(t *testing.T) {
			if got := a.call("echo__look", `{"text":"`+tt.text+`"}`); got.code() != tt.want {
				t.Errorf("%s, want %s\n%.600s\n%s", got.code(), tt.want, got.Raw, s.stderr)
			}
		})
	}
	t.Run("http/recorded-by-size-and-digest", func(t *testing.T) {
		refused := a.call("echo__look", `{"text":"`+text(harmless, most+1)+`"}`)
		got := command(t.Context(), nil, "ledger", "trace", refused.Result.Meta.Decision.RunID, "-c", s.config)
		if got.Code != exitYes || len(got.Stdout) > 64<<10 || !strings.Contains(got.Stdout, `"large":{"bytes":1048577,"digest":"sha256:`) ||
			!strings.Contains(got.Stdout, `"text":"{\"server\":\"echo\",\"tool\":\"look\",\"type\":\"call_tool\"}"`) {
			t.Errorf("%d bytes: %.600s\n%s", len(got.Stdout), got.Stdout, got.Stderr)
		}
		replayed := filepath.Join(t.TempDir(), "trace.json")
		cli.Write(t, replayed, got.Stdout)
		if got := command(t.Context(), nil, "replay", replayed); got.Code != exitYes {
			t.Errorf("replay ended with %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
	t.Run("http/held-and-approved", func(t *testing.T) {
		args := `{"text":"` + text("hold ", most) + `"}`
		held := a.call("echo__look", args)
		if held.code() != "approval_required" {
			t.Fatalf("%.600s\n%s", held.Raw, s.stderr)
		}
		s.decide(t, "approve", held.Result.Meta.Decision.RunID, bob)
		if got := a.until(t, "echo__look", args, "approval_required"); got.code() != fmt.Sprintf("%d bytes", most) {
			t.Errorf("%.600s\n%s", got.Raw, s.stderr)
		}
	})
	s.stop(t, exitYes)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), onStdio(t, dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, tt := range tests {
		t.Run("stdio/"+tt.name, func(t *testing.T) {
			got, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo__look", Arguments: map[string]string{"text": tt.text}})
			if err != nil {
				t.Fatal(err)
			}
			if said := fmt.Sprint(got.Content[0].(*sdk.TextContent).Text); !strings.Contains(said, tt.want) {
				t.Errorf("%s, want %s", said, tt.want)
			}
		})
	}
}
