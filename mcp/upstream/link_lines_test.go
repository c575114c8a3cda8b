package upstream

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func init() {
	maps.Copy(roles, map[string]func() script{
		// Answers with what came: how many calls so far, and whether a carriage return stood between the words.
		"minds-its-lines": func() script {
			calls := 0
			return func(w spoken) []string {
				if w.method == "tools/call" {
					calls++
				}
				switch w.method {
				case "tools/call", "prompts/get":
					return []string{result(w.id, fmt.Sprintf(`{"calls":%d,"broken":%t}`, calls, strings.Contains(w.params, "\r")))}
				}
				return honest(w)
			}
		},
	})
}

// TestNoLineOfAClientIsAMessage: what a client wrote goes on as it came, and a line break in it must not become the end of a message
// for a server that reads lines. The rest would be a tools/call that nobody judged.
func TestNoLineOfAClientIsAMessage(t *testing.T) {
	const smuggled = `{"jsonrpc":"2.0","id":777,"method":"tools/call","params":{"name":"burn","arguments":{}}}`
	for _, tt := range []struct{ name, end string }{
		{"line-feed", "\n"}, {"carriage-return", "\r"}, {"both", "\r\n"}, {"blank-lines", "\n\n\r\r"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			s := childServer(t, "minds-its-lines")
			l := mustLink(t, upstreams(t, Limits{}, s), s.Name, Peer{Protocol: older})
			hidden := jsontext.Value(`{"x":[` + tt.end + smuggled + tt.end + `]}`)
			call := callByListing(t, l, `{}`)
			call.Meta = hidden
			if r := l.Call(t.Context(), call, nil); string(r.Result) != `{"calls":1,"broken":false}` {
				t.Errorf("Call() = %+v with the result %s", r, r.Result)
			}
			reply, err := l.Request(t.Context(), "prompts/get", hidden, nil)
			if err != nil || string(reply.Result) != `{"calls":1,"broken":false}` {
				t.Errorf("Request() = %s, %s, %v", reply.Result, reply.Error, err)
			}
			if err := l.Notify(t.Context(), "notifications/roots/list_changed", hidden); err != nil {
				t.Errorf("Notify() = %v", err)
			}
			reply, err = l.Request(t.Context(), "prompts/get", nil, nil)
			if err != nil || string(reply.Result) != `{"calls":1,"broken":false}` {
				t.Errorf("after a notification: %s, %s, %v", reply.Result, reply.Error, err)
			}
			l.Close()
		})
	}
}
