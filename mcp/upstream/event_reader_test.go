package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEventReader(t *testing.T) {
	const limit = 101
	x := strings.Repeat("x", 93)
	for _, tt := range []struct {
		name, in, out string // "name=data;" for each event
		err           error
	}{
		{"message", "data: {}\n\n", "={};", io.EOF},
		{"named-message", "event: message\ndata: {}\n\n", "message={};", io.EOF},
		{"id-and-retry", "id: 1\nretry: 5\ndata: {}\n\n", "={};", io.EOF},
		{"no-space", "data:{}\n\n", "={};", io.EOF},
		{"carriage-returns", "data: {}\r\n\r\n", "={};", io.EOF},
		{"several-lines", "data: {\ndata: }\n\n", "={\n};", io.EOF},
		{"comment", ": ping\n\ndata: {}\n\n", "=;={};", io.EOF},
		{"field-without-colon", "data\n\ndata: {}\n\n", "=;={};", io.EOF},
		{"endpoint", "event: endpoint\ndata: /x\n\n", "endpoint=/x;", io.EOF},
		{"cut-off", "data: {}\n\ndata: {}\n", "={};", io.EOF},
		{"cut-off-in-a-line", "data: {}", "", io.EOF},
		{"at-the-limit", "data: " + x + "\n\n", "=" + x + ";", io.EOF},
		{"one-past-the-limit", "data: " + strings.Repeat("x", 95) + "\n\n", "", bufio.ErrTooLong},
		{"many-lines-past-the-limit", strings.Repeat("data: x\n", 13) + "\n", "", bufio.ErrTooLong},
		{"line-without-end", strings.Repeat("x", 10_000), "", bufio.ErrTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := newEventReader(iotest.OneByteReader(strings.NewReader(tt.in)), limit, func(int) error { return nil })
			var out strings.Builder
			for {
				name, data, err := events.nextEvent()
				if err != nil {
					if out.String() != tt.out || !errors.Is(err, tt.err) {
						t.Errorf("events of %q = %q, %v, want %q, %v", tt.in, &out, err, tt.out, tt.err)
					}
					return
				}
				fmt.Fprintf(&out, "%s=%s;", name, data)
			}
		})
	}
}
