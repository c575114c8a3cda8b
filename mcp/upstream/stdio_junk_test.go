package upstream

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
)

// noise is what children write to standard output that is no message.
var noise = []string{"Server ready \x1b[31m hunter22", "", `[{"jsonrpc":"2.0","id":3,"result":{}}]`, "[INFO] called", "null", "\xff"}

func init() {
	chatty := func(lines []string) func() script {
		return func() script {
			return func(w spoken) []string {
				if answer := honest(w); answer != nil {
					return append(append([]string{}, lines...), answer...)
				}
				return nil
			}
		}
	}
	maps.Copy(roles, map[string]func() script{
		"chatty": chatty(noise),
		"too-chatty": func() script {
			return answering("tools/call", func(w spoken) []string {
				return append(slices.Repeat([]string{"log"}, maxJunk+1), result(w.id, oneResult))
			})
		},
		"just-chatty": func() script {
			return answering("tools/call", func(w spoken) []string {
				return append(slices.Repeat([]string{"log"}, maxJunk), result(w.id, oneResult))
			})
		},
	})
}

// TestLinesThatAreNoMessages shows that they cost neither the server nor a call, up to a limit, and that the first one is logged.
func TestLinesThatAreNoMessages(t *testing.T) {
	noLeak(t)
	s := childServer(t, "chatty", Header{"TOKEN", "hunter22"})
	u := upstreams(t, Limits{}, s)
	var log bytes.Buffer
	u.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		l, r := linkCall(t, u, s.Name, `{}`)
		if r.Effect != EffectDone {
			t.Errorf("Call() = %+v, want it done", r)
		}
		l.Close()
	}
	if n := strings.Count(log.String(), "standard output"); n != 1 || !strings.Contains(log.String(), `ready \\u001b[31m [masked`) || !strings.Contains(log.String(), "child") {
		t.Errorf("the log has %d lines about it, want one with the server and the escaped line without secrets:\n%s", n, log.String())
	}
}

func TestLinesThatAreNoMessagesAreBounded(t *testing.T) {
	for role, code := range map[string]string{"just-chatty": "", "too-chatty": CodeProtocol} { // in any order
		t.Run(role, func(t *testing.T) {
			noLeak(t)
			s := childServer(t, role)
			l, r := linkCall(t, upstreams(t, Limits{}, s), s.Name, `{}`)
			if r.Code != code {
				t.Errorf("Call() = %+v, want the code %q", r, code)
			}
			if says := "to standard output that are no messages"; code != "" && !strings.Contains(r.Reason, says) {
				t.Errorf("the reason is %q, want %q", r.Reason, says)
			}
			l.Close()
		})
	}
}
