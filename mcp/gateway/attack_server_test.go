package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// TestInputThatReadsInTwoWaysIsNotAskedFor: a result that asks for input is judged by one reading, and clients have others.
func TestInputThatReadsInTwoWaysIsNotAskedFor(t *testing.T) {
	deep := strings.Repeat(`{"a":`, wire.MaxDepth) + `{}` + strings.Repeat(`}`, wire.MaxDepth)
	for name, request := range map[string]string{ // in any order
		"method-twice":   `{"method":"sampling/createMessage","method":"elicitation/create","params":{}}`,
		"params-twice":   `{"method":"elicitation/create","params":{"requestedSchema":{"$ref":"#"}},"params":{}}`,
		"broken-utf-8":   "{\"method\":\"elicitation/create\",\"params\":{\"\xff\":1}}",
		"deeply-nested":  `{"method":"elicitation/create","params":{"requestedSchema":` + deep + `}}`,
		"lone-surrogate": `{"method":"elicitation/create","params":{"message":"\ud800"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose &^= ExposeSampling })
			r.servers["docs"].says("prompts/get", `{"resultType":"input_required","inputRequests":{"a":`+request+`}}`)
			got := r.modern("docs", `{"sampling":{},"elicitation":{}}`).ask("prompts/get", `{"name":"p"}`)
			if !strings.Contains(got, `"code":"input_refused"`) || strings.Contains(got, "elicitation/create") {
				t.Errorf("the client sees %.300s", got)
			}
		})
	}
}

// TestErrorsThatShowURLsAreElicitations: an error that has people open a URL needs what an elicitation needs.
func TestErrorsThatShowURLsAreElicitations(t *testing.T) {
	for _, tt := range []struct {
		name, can, code string
		without         Expose
		passes          bool
	}{
		{"exposed-and-declared", `{"elicitation":{"url":{}}}`, "-32042", 0, true},
		{"not-exposed", `{"elicitation":{"url":{}}}`, "-32042", ExposeElicitation, false},
		{"not-declared", `{"elicitation":{}}`, "-32042", 0, false},
		{"spelled-otherwise", `{}`, "-3.2042e4", 0, false},
		{"another-error", `{}`, "-32041", ExposeElicitation, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newFixture(t, "docs", func(o *Options) { o.Servers[0].Expose &^= tt.without })
			failed := jsontext.Value(`{"code":` + tt.code + `,"message":"x","data":{"elicitations":[{"url":"https://elsewhere.test/"}]}}`)
			r.judge.decide = func(context.Context, *ToolCall) Answer { return Answer{Error: failed} }
			r.servers["docs"].plays("prompts/get", func(context.Context, *playedLink, jsontext.Value, func(wire.Message)) (upstream.Reply, error) {
				return upstream.Reply{Error: failed}, nil
			})
			c := r.legacy("docs", tt.can)
			for _, got := range []string{c.ask("tools/call", `{"name":"echo"}`), c.ask("prompts/get", `{"name":"p"}`)} {
				if strings.Contains(got, "elsewhere.test") != tt.passes {
					t.Errorf("the client sees %s", got)
				}
			}
		})
	}
}

// TestResultsOfTasksAreHeldBack: the server's result in a task passes as it would have without one, and asks for nothing.
func TestResultsOfTasksAreHeldBack(t *testing.T) {
	for name, tt := range map[string]struct{ result, want string }{ // in any order
		"plain":           {`{"content":[1.0],"_meta":{"io.modelcontextprotocol/x":1,"own":1.0}}`, `"result":{"content":[1.0],"_meta":{"own":1.0}}`},
		"input":           {`{"resultType":"input_required","inputRequests":{}}`, `"code":"input_refused"`},
		"input-by-member": {`{"inputRequests":{"a":{"method":"elicitation/create"}}}`, `"code":"input_refused"`},
		"task":            {`{"resultType":"task","taskId":"theirs"}`, `"code":"result_refused"`},
		"no-object":       {`[1]`, `"code":"result_refused"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			r.judge.tasks["ann/run-1.x"] = jsontext.Value(`{"status":"completed","result":` + tt.result + `,"taskId":"run-1.x"}`)
			got := r.modern("docs", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`).ask("tasks/get", `{"taskId":"run-1.x"}`)
			if !strings.Contains(got, tt.want) || name != "plain" && (!strings.Contains(got, `"run_id":"run-1"`) || strings.Contains(got, "theirs")) {
				t.Errorf("the client sees %s", got)
			}
		})
	}
}

// TestWhatWaitsForAClientIsBounded: a server can neither write one resource in many ways to fill a subscription that nobody reads, nor ask
// a client without end that does not answer.
func TestWhatWaitsForAClientIsBounded(t *testing.T) {
	t.Run("one-resource-in-many-spellings", func(t *testing.T) {
		n := newTestSubscription(filter{uris: []string{"aaaaaaaa"}})
		for i := range 256 {
			uri := ""
			for bit := range 8 {
				uri += []string{"a", `\u0061`}[i>>bit&1]
			}
			n.receive(wire.Message{Method: noteUpdated, Params: jsontext.Value(fmt.Sprintf(`{"uri":"%s","n":%d}`, uri, i))})
		}
		if all := n.takeWaiting(); len(all) != 1 || !strings.Contains(string(all[0]), `"uri":"aaaaaaaa"`) {
			t.Errorf("%d messages wait, want one", len(all))
		}
	})
	t.Run("questions", func(t *testing.T) {
		r := newFixture(t, "docs mail", nil)
		c := r.legacy("", `{"roots":{}}`)
		docs, mail := r.servers["docs"].link(), r.servers["mail"].link()
		roots := func(l *playedLink, id int) {
			l.peer.OnMessage(wire.Message{ID: jsontext.Value(fmt.Sprint(id)), Method: "roots/list"})
		}
		for i := range maxQuestions {
			roots(docs, i)
			c.pushed()
		}
		roots(docs, maxQuestions)
		if got := within(t, "the refusal", r.servers["docs"].answers); !strings.HasPrefix(got, fmt.Sprint(maxQuestions)+` error {"code":-32603`) {
			t.Error(got)
		}
		roots(mail, 1)
		c.pushed() // another server is not held to it
	})
}
