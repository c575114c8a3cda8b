package mcptest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/clitest"
)

// A Deed replaces the honest answer of a server to one method, over either transport.
type Deed struct {
	Method   string
	Do       func(x *Exchange)
	Redirect string // for HTTP, in place of Do: the target of a redirect
}

// An Exchange is a request and the way back to its client.
type Exchange struct {
	ID string
	outlet
	server *Server
}

// Result answers with a result.
func (x *Exchange) Result(result string) { x.Say(Response(x.ID, result)) }

// An outlet carries messages to a client.
type outlet struct {
	to         io.Writer
	begin, end string // around a message
	cut        func() // ends the connection, or the process
}

// Say sends a message.
func (o outlet) Say(message string) { io.WriteString(o.to, o.begin+message+o.end) }

// asks is a request to the client, with a schema that refers to itself.
const asks = `{"jsonrpc":"2.0","id":"ask-1","method":"elicitation/create","params":{"message":"Your name?",` +
	`"requestedSchema":{"type":"object","properties":{"a":{"allOf":[{"$ref":"#"}]}},"allOf":[{"$ref":"#"}]}}}`

// deeds are deeds by name, because a process is told only the name. Some repeat the secret that they are given.
func deeds(secret string) map[string]Deed {
	cut := func(x *Exchange) { x.cut() }
	says := func(line string) func(*Exchange) {
		return func(x *Exchange) { x.Say(strings.ReplaceAll(line, "ID", x.ID)) }
	}
	text := func(s string) string { return `{"content":[{"type":"text","text":` + s + `}]}` }

	return map[string]Deed{
		"honest":                   {},
		"dies-at-call":             {Method: "tools/call", Do: cut},
		"huge-at-call":             {Method: "tools/call", Do: func(x *Exchange) { writeHuge(x.to, x.begin, x.ID, x.end) }},
		"elicits-at-call":          {Method: "tools/call", Do: elicit},
		"echoes-in-json-in-result": {Method: "tools/call", Do: says(Response("ID", text(clitest.Quote(disguised(secret)))))},
		"echoes-in-error": {Method: "tools/call",
			Do: says(`{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":` + clitest.Quote("denied "+secret) + `}}`)},
	}
}

// Secret is the secret that a configuration of Configured sends to the server.
const Secret = "player-secret-4711"

// Configured starts a server with a deed, or returns how to start it. It returns the server's part of the configuration, in a
// folder whose file token has the secret, and a function that counts its calls. A process is started as the program player,
// which runs Stdio.
func Configured(t testing.TB, name, transport, decoy string) (server string, called func() int) {
	t.Helper()
	if transport == "stdio" {
		log := filepath.Join(t.TempDir(), "calls")
		server = fmt.Sprintf(`type: stdio, command: player, args: [%s, %q], env: {PLAYER_SECRET: "${file:token}"}`, name, log)
		return server, func() int {
			text, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return strings.Count(string(text), "\n")
		}
	}

	byName := deeds(Secret)
	byName["redirects-at-call"] = Deed{Redirect: decoy, Method: "tools/call"}
	d, known := byName[name]
	if !known {
		t.Fatalf("there is no deed %q", name)
	}
	s := Misbehaving(t, d)
	server = fmt.Sprintf(`type: http, url: %q, headers: {Authorization: "Bearer ${file:token}"}`, s.URL)
	return server, func() int { return int(s.Calls.Load()) }
}

// elicit asks the client something, and repeats the client's answer in the result.
func elicit(x *Exchange) {
	x.Say(asks)
	select {
	case said := <-x.server.said:
		x.Result(`{"content":[{"type":"text","text":` + clitest.Quote(said) + `}]}`)
	case <-x.server.gone:
	}
}

// disguised is a JSON document whose string is the secret, its first letter escaped.
func disguised(secret string) string {
	if secret == "" {
		return "{}"
	}
	return fmt.Sprintf(`{"token":"\u%04x%s"}`, secret[0], secret[1:])
}

// A message is one that a client sent.
type message struct {
	method, id string // empty if it has none
	body       []byte
}

func readMessage(body []byte) message {
	method, _ := clitest.ValueAt(body, "/method")
	id, _ := clitest.ValueAt(body, "/id")
	return message{strings.Trim(string(method), `"`), string(id), body}
}

// redirects answers with a redirect if that is the server's deed.
func (s *Server) redirects(w http.ResponseWriter, m message) bool {
	if s.deed == nil || s.deed.Redirect == "" || m.method != s.deed.Method {
		return false
	}
	s.arrived(m.method)
	w.Header().Set("Location", s.deed.Redirect)
	w.WriteHeader(http.StatusTemporaryRedirect)
	return true
}

// play handles a message, and returns when it is answered.
func (s *Server) play(m message, out outlet) {
	switch {
	case m.method == "" && m.id != "":
		select {
		case s.said <- string(m.body):
		default:
		}
		return
	case m.id == "": // a notification
		return
	}

	s.arrived(m.method)
	switch {
	case s.deed != nil && m.method == s.deed.Method && s.deed.Do != nil:
		s.deed.Do(&Exchange{m.id, out, s})
	case Honest(m.method) == "":
		out.Say(strings.Replace(unknownMethod, "ID", m.id, 1))
	case m.method == "initialize":
		out.Say(Response(m.id, strings.Replace(Hello, `"tools":{}`, `"tools":{"listChanged":true}`, 1)))
	default:
		out.Say(Response(m.id, s.Answer(m.method)))
	}
}

// Change announces other tools. It returns when the client has read that: when it has answered a ping that followed.
func (s *Server) Change(ctx context.Context) error {
	select {
	case out := <-s.streams:
		s.streams <- out
		out.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		out.Say(`{"jsonrpc":"2.0","id":"ping-1","method":"ping"}`)
	case <-ctx.Done():
		return fmt.Errorf("there is no way to tell the client: %w", ctx.Err())
	}

	for {
		select {
		case said := <-s.said:
			if strings.Contains(said, `"ping-1"`) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the client did not answer the ping: %w", ctx.Err())
		}
	}
}

// Stdio is a server over standard input and output, until the input ends. Its first argument is the deed; the second one, if there is one,
// a file that gets a line for each tools/call. Its secret is in PLAYER_SECRET.
func Stdio() {
	d, known := deeds(os.Getenv("PLAYER_SECRET"))[os.Args[1]]
	if !known {
		os.Exit(9)
	}
	s := newServer(Honest, &d)
	out := outlet{to: &locked{to: os.Stdout}, end: "\n", cut: func() { os.Exit(7) }}

	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			close(s.gone)
			return
		}
		m := readMessage(line)
		if m.method == "tools/call" && len(os.Args) > 2 {
			logCall(os.Args[2])
		}
		go s.play(m, out)
	}
}

// logCall adds a line to a file.
func logCall(path string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		fmt.Fprintln(f, "tools/call")
		err = f.Close()
	}
	if err != nil {
		os.Exit(8)
	}
}

// serveStream is a client's stream for messages that answer no request.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	out := eventsTo(w, cut)
	open := &locked{to: out.to}
	defer open.close() // w must not be written to after this
	out.to = open
	fmt.Fprint(out.to, ": hello\n\n")

	s.streams <- out
	select {
	case <-ctx.Done():
		if r.Context().Err() == nil {
			panic(http.ErrAbortHandler)
		}
	case <-s.gone:
	}
}

// eventsTo carries each message as one server-sent event.
func eventsTo(w http.ResponseWriter, cut func()) outlet {
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
