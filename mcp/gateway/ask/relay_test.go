package ask_test

import (
	"strings"
	"testing"

	"pgfsm/mcp/gateway/ask"
)

// TestQuestionsHaveNoElicitationID: revision 2026-07-28 removed the id, which servers of earlier revisions still send.
func TestQuestionsHaveNoElicitationID(t *testing.T) {
	const params = `{"mode":"url","elicitationId":"e1","url":"https://x.example"}`
	if got := string(ask.NewQuestion("elicitation/create", []byte(params))); strings.Contains(got, "elicitationId") || !strings.Contains(got, "https://x.example") {
		t.Errorf("NewQuestion() = %s", got)
	}
	if got := string(ask.NewQuestion("other", []byte(params))); !strings.Contains(got, "elicitationId") {
		t.Errorf("of another method: NewQuestion() = %s", got)
	}
}
