package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway"
)

// TestDecisionsSayFirstWhatIsKnown: the text begins with what is known of the call and ends with the object that programs read in _meta.
// There is no structuredContent, because clients validate it against the tool's outputSchema.
func TestDecisionsSayFirstWhatIsKnown(t *testing.T) {
	for _, tc := range []struct{ name, effect, want string }{
		{"not-sent", "not_sent", "The call was not sent: Because.\n{"},
		{"unknown", "unknown", "The call may have happened: check before repeating. Because.\n{"},
		{"done", "done", "The call was made; the result is withheld. Because.\n{"},
		{"no-effect-is-unknown", "", "The call may have happened: check before repeating. Because.\n{"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := gateway.Decision{Code: "some_code", Effect: tc.effect, Reason: "Because.", Retry: "later", After: 15, RunID: "r1", Decide: "https://x/?a=1&b=<2>"}
			var got struct {
				Meta    map[string]json.RawMessage `json:"_meta"`
				Content []struct{ Type, Text string }
				IsError bool
				Rest    json.RawMessage `json:"structuredContent"`
			}
			check.NoError(t, json.Unmarshal(d.Result(true), &got))
			text := got.Content[0].Text
			lines := strings.Split(text, "\n")
			if len(got.Content) != 1 || !strings.HasPrefix(text, tc.want) || len(lines) != 2 {
				t.Errorf("the content is %q, want one text of two lines that begins with %q", got.Content, tc.want)
			}
			if meta := string(got.Meta["io.pgfsm/decision"]); meta != lines[len(lines)-1] || len(got.Meta) != 1 || got.Rest != nil || !got.IsError {
				t.Errorf("the result is %s", d.Result(true))
			}
			var again gateway.Decision
			if err := json.Unmarshal(got.Meta["io.pgfsm/decision"], &again); err != nil || again != d {
				t.Errorf("the decision is read as %+v, %v", again, err)
			}
		})
	}
}
