package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// A player is an MCP server that keeps to the protocol but for one deed, over stdio or streamable HTTP.
type player struct {
	deed    deed
	called  func()          // for each tools/call
	answers chan string     // what the client answered when it was asked something
	opened  chan outlet     // ways to say something that nobody asked for
	over    <-chan struct{} // closed when nobody waits any more
}

// A deed is what a player does in the place of the honest answer to one method.
type deed struct {
	method   string
	do       func(p *player, id string, out outlet)
	redirect string // in place of do, over HTTP: where to
}

// An outlet carries messages to the client.
type outlet struct {
	to         io.Writer
	begin, end string // around a message
	cut        func() // ends the connection, or the process
}

func (o outlet) say(message string) { io.WriteString(o.to, o.begin+message+o.end) }

func (o outlet) result(id, result string) {
	o.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
}

// askedAll is how a client is asked for something with a schema that refers to itself.
const askedAll = `{"jsonrpc":"2.0","id":"ask-1","method":"elicitation/create","params":{"message":"Your name?",` +
	`"requestedSchema":{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"}]}},"allOf":[{"$ref":"#"}]}}}`

// hugeBytes is what a server sends that sends too much.
const hugeBytes = 100 << 20

// deeds are known by name, because a process is told only the name.
func deeds(secret string) map[string]deed {
	hang := func(p *player, _ string, _ outlet) { <-p.over }
	cut := func(_ *player, _ string, out outlet) { out.cut() }
	huge := func(_ *player, id string, out outlet) {
		io.WriteString(out.to, out.begin+`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`)
		chunk := strings.Repeat("x", 1<<20)
		for range hugeBytes / len(chunk) {
			if _, err := io.WriteString(out.to, chunk); err != nil {
				return
			}
		}
		io.WriteString(out.to, `"}]}}`+out.end)
	}
	says := func(line string) func(*player, string, outlet) {
		return func(_ *player, id string, out outlet) { out.say(strings.ReplaceAll(line, "ID", id)) }
	}
	asks := func(result string) func(*player, string, outlet) {
		return func(p *player, id string, out outlet) {
			out.say(askedAll)
			select {
			case said := <-p.answers:
				out.result(id, strings.ReplaceAll(result, "SAID", quoted(said)))
			case <-p.over:
			}
		}
	}
	text := func(s string) string { return `{"content":[{"type":"text","text":` + s + `}]}` }
	return map[string]deed{
		"honest":              {},
		"hangs-at-initialize": {method: "initialize", do: hang},
		"hangs-at-list":       {method: "tools/list", do: hang},
		"hangs-at-call":       {method: "tools/call", do: hang},
		"dies-at-initialize":  {method: "initialize", do: cut},
		"dies-at-list":        {method: "tools/list", do: cut},
		"dies-at-call":        {method: "tools/call", do: cut},
		"huge-at-list":        {method: "tools/list", do: huge},
		"huge-at-call":        {method: "tools/call", do: huge},
		"no-json-at-list":     {method: "tools/list", do: says(`{Server: ready!}`)},
		"no-json-at-call":     {method: "tools/call", do: says(`{Server: ready!}`)},
		"elicits-at-call":     {method: "tools/call", do: asks(text("SAID"))},
		"echoes-in-result": {method: "tools/call",
			do: says(`{"jsonrpc":"2.0","id":ID,"result":` + text(quoted(secret)) + `}`)},
		"echoes-in-json-in-result": {method: "tools/call", // as servers do that have no structured content
			do: says(`{"jsonrpc":"2.0","id":ID,"result":` + text(quoted(disguised(secret))) + `}`)},
		"echoes-in-error": {method: "tools/call",
			do: says(`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":` + quoted("denied "+secret) + `}}`)},
		"tells-environment": {method: "tools/call", do: func(_ *player, id string, out outlet) {
			out.result(id, text(quoted(strings.Join(os.Environ(), "\n"))))
		}},
	}
}

// disguised is a JSON document whose string is the secret, its first letter escaped.
func disguised(secret string) string {
	if secret == "" {
		return "{}"
	}
	return fmt.Sprintf(`{"token":"\u%04x%s"}`, secret[0], secret[1:])
}

// play answers one message and returns when there is no more to say to it.
func (p *player) play(message []byte, out outlet) {
	word := func(name string) string {
		v, err := at(message, "/"+name)
		if err != nil {
			return ""
		}
		return string(v)
	}
	method, id := strings.Trim(word("method"), `"`), word("id")
	if method == "tools/call" && p.called != nil {
		p.called()
	}
	switch {
	case method == "" && id != "":
		select {
		case p.answers <- string(message):
		default:
		}
	case id == "": // a notification
	case method == p.deed.method && p.deed.do != nil:
		p.deed.do(p, id, out)
	case method == "initialize":
		out.result(id, strings.Replace(hello, `"tools":{}`, `"tools":{"listChanged":true}`, 1))
	case honest(method) != "":
		out.result(id, honest(method))
	default:
		out.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"unknown"}}`)
	}
}

// change says that the tools have changed, if changed is set, and returns when the client must have read it: it has
// answered a ping that went behind it.
func (p *player) change(ctx context.Context, changed bool) error {
	select {
	case out := <-p.opened:
		p.opened <- out
		if changed {
			out.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		out.say(`{"jsonrpc":"2.0","id":"ping-1","method":"ping"}`)
	case <-ctx.Done():
		return fmt.Errorf("there is no way to tell the client: %w", ctx.Err())
	}
	for {
		select {
		case said := <-p.answers:
			if strings.Contains(said, `"ping-1"`) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the client did not answer the ping: %w", ctx.Err())
		}
	}
}

func newPlayer(d deed, over <-chan struct{}, called func()) *player {
	return &player{deed: d, called: called, answers: make(chan string, 16), opened: make(chan outlet, 16), over: over}
}

// locked makes a writer safe for several messages at once, each in one piece, until it is closed.
type locked struct {
	sync.Mutex
	to io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	if l.to == nil {
		return 0, io.ErrClosedPipe
	}
	return l.to.Write(b)
}

func (l *locked) close() {
	l.Lock()
	defer l.Unlock()
	l.to = nil
}

// playOnStdio is a player over standard input and output, until the input ends. Its first argument is the deed; the second one, if there
// is one, a file that gets a line for each tools/call.
func playOnStdio() {
	var called func()
	if len(os.Args) > 2 {
		called = func() {
			f, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
			if err == nil {
				fmt.Fprintln(f, "tools/call")
				err = f.Close()
			}
			if err != nil {
				os.Exit(8)
			}
		}
	}
	over := make(chan struct{})
	d, known := deeds(os.Getenv("PLAYER_SECRET"))[os.Args[1]]
	if !known {
		os.Exit(9)
	}
	p := newPlayer(d, over, called)
	out := outlet{to: &locked{to: os.Stdout}, end: "\n", cut: func() { os.Exit(7) }}
	p.opened <- out
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			close(over)
			return
		}
		go p.play(line, out)
	}
}

// stage is a player over streamable HTTP: POST, and GET for what nobody asked for.
type stage struct {
	*httptest.Server
	*player
}

// newStage sets up a player in this process. It counts the tools/call with called.
func newStage(t *testing.T, d deed, called func()) *stage {
	t.Helper()
	over := make(chan struct{})
	s := &stage{player: newPlayer(d, over, called)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Server.Close)
	t.Cleanup(func() { close(over) })
	return s
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.serveStream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	method, _ := at(body, "/method")
	if name := strings.Trim(string(method), `"`); s.deed.redirect != "" && name == s.deed.method {
		if name == "tools/call" {
			s.called()
		}
		w.Header().Set("Location", s.deed.redirect)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if _, err := at(body, "/id"); err != nil || method == nil {
		s.play(body, outlet{})
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.play(body, event(w, func() { panic(http.ErrAbortHandler) }))
}

// event carries each message as one server-sent event.
func event(w http.ResponseWriter, cut func()) outlet {
	return outlet{to: flushing{w}, begin: "event: message\ndata: ", end: "\n\n", cut: cut}
}

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func (s *stage) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	out := event(w, cut)
	open := &locked{to: out.to}
	defer open.close() // nobody may write to w any more
	out.to = open
	fmt.Fprint(out.to, ": hello\n\n")
	s.opened <- out
	select {
	case <-ctx.Done():
		if r.Context().Err() == nil {
			panic(http.ErrAbortHandler)
		}
	case <-s.over:
	}
}
