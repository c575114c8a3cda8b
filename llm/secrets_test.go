package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/secret"
)

// hushed is the piece of a key that a provider may know and repeat alone; it has what quoting changes.
const hushed = `Zq9"x\wV7-Kd3/Jm5`

// pieceIn is a piece of it that a text shows, with whatever backslashes, "" if there is none.
func pieceIn(text string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, `\`, "") }
	text = bare(strings.ReplaceAll(text, secret.Mask, "|"))
	for i := range len(bare(hushed)) - 3 {
		if piece := bare(hushed)[i : i+4]; strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// hushedModel is a model with a key that was put together, as its configuration says it.
func hushedModel(t *testing.T, e *endpoint) *Model {
	t.Helper()
	return e.model(t, "pre."+hushed, hushed)
}

// TestModel_ReasonsHoldNoPartOfASecret: wherever the cut of a reason falls.
func TestModel_ReasonsHoldNoPartOfASecret(t *testing.T) {
	quoted := fmt.Sprintf("%q", hushed)
	for _, tt := range []struct {
		name, before, behind string
		status               int
	}{
		{"as-it-is", "", hushed, 500},
		{"error-object", `{"error":{"message":"`, quoted[1:] + `}}`, 429},
		{"escaped-in-no-json", `x {"a":"`, `\u005aq9\"x\\wV7-Kd3\/Jm5"}`, 500},
		{"escaped-before-text", `{"error":{"message":"`, `\u005aq9\"x\\wV7-Kd3\/Jm5"}} x`, 500},
		{"escaped-in-a-string-in-a-string", `{"error":{"message":"{\"a\":\"`, `\\u005aq9\\\"x\\\\wV7-Kd3/Jm5\"}"}}`, 500},
		{"name-twice", `{"a":1,"a":2,"`, quoted[1:] + `:1}`, 200},
		{"place-of-a-mistake", `{"`, quoted[1:] + `:{"deeper":tru}}`, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := ""
			m := hushedModel(t, serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
				always(tt.status, body)(w, r, n)
			}))
			step := 5
			if isSoak {
				step = 1
			}
			for n := maxReasonBytes - 180; n < maxReasonBytes+8; n += step {
				body = tt.before + strings.Repeat("A", n) + tt.behind
				_, err := m.Plan(t.Context(), "x", nil)
				if err == nil || pieceIn(err.Error()) != "" {
					t.Fatalf("%d A: Plan = %v, it shows %q", n, err, pieceIn(fmt.Sprint(err)))
				}
			}
		})
	}
}

// TestModel_HTTPEchoesNoSecret: what net/http and we quote of a response.
func TestModel_HTTPEchoesNoSecret(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct{ name, answer string }{
		{"content-encoding", ok + "Content-Length: 2\r\nContent-Encoding: " + hushed + "\r\n\r\n{}"},
		{"no-http", hushed + "\r\n\r\n"},
		{"status-line", "HTTP/1.1 " + hushed + " x\r\n\r\n"},
		{"version", hushed + " 200 x\r\n\r\n"},
		{"header-line", ok + hushed + " x\r\n\r\n"},
		{"transfer-encoding", ok + "Transfer-Encoding: " + hushed + "\r\n\r\n"},
		{"content-length", ok + "Content-Length: " + hushed + "\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, raw(tt.answer))
			_, err := hushedModel(t, e).Plan(t.Context(), "x", nil)
			if err == nil || pieceIn(err.Error()) != "" || !strings.Contains(err.Error(), secret.Mask) {
				t.Errorf("Plan = %v, it shows %q, want a mask", err, pieceIn(fmt.Sprint(err)))
			}
		})
	}
}

// TestModel_TooLongResponsesAreNotKept: reading stops somewhere, perhaps within a secret.
func TestModel_TooLongResponsesAreNotKept(t *testing.T) {
	body := strings.Repeat("-", MaxCompletionBytes-len(hushed)/2) + hushed
	got, err := hushedModel(t, serve(t, always(200, body))).Plan(t.Context(), "x", nil)
	if err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") || len(got.Exchanges) != 1 || len(got.Exchanges[0].Received) > 0 {
		t.Errorf("Plan = %d exchanges, %v; want one that is too long, without a body", len(got.Exchanges), err)
	}
}
