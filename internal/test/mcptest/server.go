// Package mcptest has one scripted MCP server and one scripted model. A test says what they answer to a method or a prompt, well-formed or
// not; everything else they answer as an honest server with one tool, or not at all.
package mcptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/clitest"
)

// The results of an honest server.
const (
	Hello   = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"puppet","version":"1"}}`
	OneTool = `{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	OneText = `{"content":[{"type":"text","text":"hi"}]}`

	// TwoTools lists a tool look with a schema, and a tool burn.
	TwoTools = `{"tools":[{"name":"look","title":"L\u006fok","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"x-1":1.0},` +
		`{"name":"burn","inputSchema":{"type":"object"}}]}`
)

// Honest returns the result of a method as a server with one tool has it, or "" for a method that it does not know.
func Honest(method string) string {
	return map[string]string{"initialize": Hello, "tools/list": OneTool, "tools/call": OneText}[method]
}

// Except returns an honest server's results but for one method.
func Except(method, result string) func(string) string {
	return func(m string) string {
		if m == method {
			return result
		}
		return Honest(m)
	}
}

// A Server is an MCP server over streamable HTTP that answers with JSON documents.
type Server struct {
	*httptest.Server
	Answer    func(method string) string // the result of a method; "" hangs until the client has gone
	Arguments func(args []byte) string   // the result of a tools/call by its arguments; nil: as Answer says
	Calls     atomic.Int32               // tools/call that arrived
	Came      chan string                // known methods as they arrive; a test need not receive them
	Cut       chan struct{}              // a token for each call whose client went away before the answer
	reply     atomic.Pointer[Reply]      // the answer to tools/call in place of Answer; nil: none
	gone      chan struct{}              // closed when the test has ended
}

// A Reply answers one tools/call, by its id, down to HTTP.
type Reply func(w http.ResponseWriter, r *http.Request, id string)

// New starts a server that answers as answer says.
func New(t testing.TB, answer func(method string) string) *Server {
	t.Helper()
	s := &Server{Answer: answer, Came: make(chan string, 100), Cut: make(chan struct{}, 100), gone: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Server.Close)
	t.Cleanup(func() { close(s.gone) })
	return s
}

// SetReply sets how calls are answered from now on; nil is as Answer says.
func (s *Server) SetReply(reply Reply) {
	if reply == nil {
		s.reply.Store(nil)
		return
	}
	s.reply.Store(&reply)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m := readMessage(body)
	if m.id == "" || m.method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.answer(w, r, m)
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

// answer answers a request with one JSON document, or as the test's reply does.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, m message) {
	reply := s.reply.Load()
	s.arrived(m.method)
	if m.method == "tools/call" {
		switch {
		case s.Arguments != nil:
			args, _ := clitest.ValueAt(m.body, "/params/arguments")
			Writes("application/json", Response("ID", s.Arguments(args)))(w, nil, m.id)
			return
		case reply != nil:
			(*reply)(w, r, m.id)
			return
		}
	}

	if Honest(m.method) == "" {
		Writes("application/json", unknownMethod)(w, nil, m.id)
		return
	}
	result := s.Answer(m.method)
	if result == "" {
		s.wait(r)
		return
	}
	Writes("application/json", Response("ID", result))(w, nil, m.id)
}

const unknownMethod = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"unknown"}}`

// arrived counts a request, and sends its method to a test that waits for it.
func (s *Server) arrived(method string) {
	if method == "tools/call" {
		s.Calls.Add(1)
	}
	if Honest(method) == "" {
		return
	}
	select {
	case s.Came <- method:
	default:
	}
}

// Await waits until a method has arrived.
func (s *Server) Await(t testing.TB, method string) {
	t.Helper()
	for {
		select {
		case got := <-s.Came:
			if got == method {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("%s never arrived", method)
		}
	}
}

// Reached fails the test unless so many calls arrived.
func (s *Server) Reached(t testing.TB, want int32) {
	t.Helper()
	if got := s.Calls.Load(); got != want {
		t.Errorf("calls that reached the server = %d, want %d", got, want)
	}
}

// wait blocks until the client or the test has gone.
func (s *Server) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.gone:
	}
}

// Hangs is a Reply that never comes.
func (s *Server) Hangs(_ http.ResponseWriter, r *http.Request, _ string) {
	select {
	case <-r.Context().Done():
		s.Cut <- struct{}{}
	case <-s.gone:
	}
}

// Waits returns a Reply that is honest once leave is closed.
func (s *Server) Waits(leave <-chan struct{}) Reply {
	return func(w http.ResponseWriter, _ *http.Request, id string) {
		select {
		case <-leave:
		case <-s.gone:
		}
		Writes("application/json", Response("ID", OneText))(w, nil, id)
	}
}

// Huge is a Reply of 100 MiB.
func Huge(w http.ResponseWriter, _ *http.Request, id string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`)
	chunk := strings.Repeat("x", 1<<20)
	for range 100 {
		if _, err := io.WriteString(w, chunk); err != nil {
			return
		}
	}
	io.WriteString(w, `"}]}}`)
}

// Response returns a message with a result.
func Response(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

// Writes returns a Reply with a body of a content type, in which ID stands for the id of the call.
func Writes(content, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", content)
		io.WriteString(w, strings.ReplaceAll(body, "ID", id))
	}
}

// Config writes a configuration whose only server is p, and returns its path and that of the traces. server and more are further keys
// of the server and of the configuration.
func Config(t testing.TB, p *Server, server, more string) (config, traces string) {
	t.Helper()
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q%s}}
allowlist: allowlist.json
%s
`, p.URL, server, more), "allowlist.json", `{"puppet": ["look"]}`)
	return filepath.Join(dir, "pgfsm.yaml"), filepath.Join(dir, "traces")
}
