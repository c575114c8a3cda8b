package upstream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEventFilter(t *testing.T) {
	refused, large := errors.New("refused"), errors.New("too large")
	tests := []struct {
		name, in, out string
		endpoint      bool
		err           error
	}{
		{"message", "data: {}\n\n", "data: {}\n\n", false, nil},
		{"named-message", "event: message\ndata: {}\n\n", "data: {}\n\n", false, nil},
		{"id-and-retry-are-dropped", "id: 1\nretry: 5\ndata: {}\n\n", "data: {}\n\n", false, nil},
		{"no-space", "data:{}\n\n", "data: {}\n\n", false, nil},
		{"carriage-returns", "data: {}\r\n\r\n", "data: {}\n\n", false, nil},
		{"several-lines", "data: {\ndata: }\n\n", "data: {\ndata: }\n\n", false, nil},
		{"comment", ": ping\n\ndata: {}\n\n", "data: {}\n\n", false, nil},
		{"field-without-colon", "data\n\ndata: {}\n\n", "data: {}\n\n", false, nil},
		{"priming-event", "id: 0\ndata:\n\n", "", false, nil},
		{"other-event", "event: gossip\ndata: bad\n\n", "", false, nil},
		{"endpoint", "event: endpoint\ndata: /x\n\ndata: {}\n\n", "event: endpoint\ndata: /x\n\ndata: {}\n\n", true, nil},
		{"second-endpoint-is-dropped", "event: endpoint\ndata: /x\n\nevent: endpoint\ndata: /y\n\n",
			"event: endpoint\ndata: /x\n\n", true, nil},
		{"endpoint-where-there-is-none", "event: endpoint\ndata: /x\n\n", "", false, nil},
		{"bad-endpoint", "event: endpoint\ndata: bad\n\n", "", true, refused},
		{"bad-message", "data: {}\n\ndata: bad\n\n", "data: {}\n\n", false, refused},
		{"cut-off", "data: {}\n\ndata: {}\n", "data: {}\n\n", false, nil},
		{"cut-off-in-a-line", "data: {}", "", false, nil},
		{"at-the-limit", "data: " + strings.Repeat("x", 93) + "\n\n", "data: " + strings.Repeat("x", 93) + "\n\n",
			false, nil},
		{"one-past-the-limit", "data: " + strings.Repeat("x", 95) + "\n\n", "", false, large},
		{"many-lines-past-the-limit", strings.Repeat("data: x\n", 13) + "\n", "", false, large},
		{"line-without-end", strings.Repeat("x", 10_000), "", false, large},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			judge := func(data []byte) error {
				if string(data) == "bad" {
					return refused
				}
				return nil
			}
			f := newEventFilter(iotest.OneByteReader(strings.NewReader(tt.in)), 101, judge)
			f.tooLarge = func() error { return large }
			if tt.endpoint {
				f.endpoint = judge
			}
			out, err := io.ReadAll(f)
			if string(out) != tt.out || !errors.Is(err, tt.err) {
				t.Errorf("filter(%q) = %q, %v, want %q, %v", tt.in, out, err, tt.out, tt.err)
			}
		})
	}
}
