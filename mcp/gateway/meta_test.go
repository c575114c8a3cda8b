package gateway

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestMetaOfACall: only a progress token and short texts of a trace's context go with a call.
func TestMetaOfACall(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	for _, tt := range []struct{ name, sent, want string }{
		{"context", `{"traceparent":"00-a-b-01","tracestate":"x=y","baggage":"k=v"}`, `{"traceparent":"00-a-b-01","tracestate":"x=y","baggage":"k=v"}`},
		{"token", `{"progressToken":7}`, `{"progressToken":7}`},
		{"anything-else", `{"x":"y","com.example/z":{}}`, ``},
		{"object", `{"baggage":{"payroll":1},"traceparent":["a"],"tracestate":1}`, ``},
		{"at-the-limit", `{"traceparent":` + long(64) + `}`, `{"traceparent":` + long(64) + `}`},
		{"one-past", `{"traceparent":` + long(65) + `,"tracestate":` + long(513) + `,"baggage":` + long(8193) + `}`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &ToolCall{token: jsontext.Value("7")}
			if got := string(c.callMeta(jsontext.Value(tt.sent))); got != tt.want {
				t.Errorf("meta(%.100s) = %.100s, want %.100s", tt.sent, got, tt.want)
			}
		})
	}
}
