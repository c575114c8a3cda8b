package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/wire"
)

// The page shows the functions that are on the stacks while one call is made. TestDocsOneCall takes the stacks.
const (
	oneCallPage = "docs/internals/one-call.md"
	oneCallMax  = 30 // distinct functions of one call
)

// A frame is one function of this module on a stack.
type frame struct{ name, file string }

// A goroutine is one goroutine of a dump: its frames of this module, the outermost first.
type goroutine struct {
	id, creator string // the creator's id
	frames      []frame
	answers     bool // it answers an HTTP request
	writes      bool // it writes the answer
}

var (
	goroutineHead = regexp.MustCompile(`^goroutine (\d+) `)
	createdBy     = regexp.MustCompile(`^created by (.+) in goroutine (\d+)$`)
	arguments     = regexp.MustCompile(`\([^()]*\)$`)
	closure       = regexp.MustCompile(`(\.func\d+|\.gowrap\d+|\.deferwrap\d+|\[\.\.\.\]|\.\d+|-range\d+)+$`)
)

// goroutines takes the stacks of all goroutines, the oldest first.
func goroutines() []goroutine {
	dump := make([]byte, 1<<20)
	for n := runtime.Stack(dump, true); ; n = runtime.Stack(dump, true) {
		if n < len(dump) {
			dump = dump[:n]
			break
		}
		dump = make([]byte, 2*len(dump))
	}
	var all []goroutine
	for block := range bytes.SplitSeq(dump, []byte("\n\n")) {
		lines := strings.Split(string(block), "\n")
		m := goroutineHead.FindStringSubmatch(lines[0])
		if m == nil {
			continue
		}
		g := goroutine{id: m[1]}
		for i := 1; i+1 < len(lines); i += 2 {
			name := arguments.ReplaceAllString(lines[i], "")
			if c := createdBy.FindStringSubmatch(lines[i]); c != nil {
				name, g.creator = c[1], c[2]
			}
			g.answers = g.answers || name == "net/http.(*conn).serve"
			g.writes = g.writes || name == "net/http.(*response).Write"
			file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), ":")
			name = closure.ReplaceAllString(name, "")
			if short, ours := shortName(name); ours && !strings.HasSuffix(file, "_test.go") {
				g.frames = append(g.frames, frame{short, moduleFile(file)})
			}
		}
		slices.Reverse(g.frames)
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b goroutine) int { // ids grow
		return cmp.Or(cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
	})
	return all
}

// shortName returns a function's name without the module; ours says that it is of this module.
func shortName(name string) (short string, ours bool) {
	if short, ours = strings.CutPrefix(name, "pgfsm/"); ours {
		return short, true
	}
	if short, ours = strings.CutPrefix(name, "main."); ours { // as the test's binary calls the command
		return "cmd/pgfsm." + short, true
	}
	return "", false
}

// moduleFile returns a file's path in the module, whatever -trimpath made of it.
func moduleFile(path string) string {
	if i := strings.LastIndex(path, "pgfsm/"); i >= 0 && !filepath.IsAbs(path) {
		return strings.TrimPrefix(path[strings.Index(path, "pgfsm/"):], "pgfsm/")
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// passed returns the functions on the stacks of one call: of the goroutine for which first holds, and of those that it started in
// mcp/upstream to reach the server. (What else a command starts, such as the ledger's writer, serves all calls.)
func passed(all []goroutine, first func(goroutine) bool) (passed []frame) {
	ours := make(map[string]bool)
	for _, g := range all { // creators come first
		started := ours[g.creator] && len(g.frames) > 0 && strings.HasPrefix(g.frames[0].name, "mcp/upstream.")
		if !started && !(len(g.frames) > 0 && first(g)) {
			continue
		}
		ours[g.id] = true
		for _, f := range g.frames {
			if !slices.Contains(passed, f) {
				passed = append(passed, f)
			}
		}
	}
	return passed
}

// A stackedServer is an MCP server with one tool. It takes the stacks of the whole process when a tools/call arrives.
type stackedServer struct {
	*httptest.Server
	mu    sync.Mutex
	stack []goroutine
	text  atomic.Pointer[string] // the tool's answer
}

func newStackedServer(t *testing.T) *stackedServer {
	s := new(stackedServer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil {
			t.Error(err)
		}
		m, err := wire.Read(body.Bytes())
		if r.Method != http.MethodPost || err != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		var result []byte
		switch m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "1")
			result = []byte(mcptest.Hello)
		case "tools/list":
			result = fmt.Appendf(nil, `{"tools":[`+gatewayBenchTool+`]}`, "echo")
		case "tools/call":
			s.mu.Lock()
			s.stack = goroutines()
			s.mu.Unlock()
			result = fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, *s.text.Load())
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !m.Request():
			w.WriteHeader(http.StatusAccepted)
			return
		case result == nil:
			_, _ = w.Write(wire.Failure(nil, m.ID, wire.ErrorObject(-32601, "method not found", nil)))
			return
		}
		_, _ = w.Write(wire.Response(nil, m.ID, result))
	}))
	t.Cleanup(s.Close)
	small := "hello"
	s.text.Store(&small)
	return s
}

func (s *stackedServer) taken() []goroutine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stack
}

// serveStacks makes a call through pgfsm serve, and returns the functions on its way to the server and those on the way of the answer.
func serveStacks(t *testing.T) (there, back []frame) {
	s := newStackedServer(t)
	host, secret := serveInProcess(t, strings.TrimPrefix(s.URL, "http://"), true)
	c := newBenchClient(t, host, "/servers/kb/mcp", secret)
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`
	if answer, err := c.post(fmt.Sprintf(call, 1)); err != nil || !bytes.Contains(answer, []byte(`"text":"hello"`)) {
		t.Fatalf("the first call: %s, %v", answer, err)
	}
	// An answer that the client does not read keeps the gateway where it writes it.
	huge := strings.Repeat("a", 15<<20)
	s.text.Store(&huge)
	if err := c.conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	request := fmt.Sprintf(call, 2)
	if _, err := fmt.Fprintf(c.conn, "%sContent-Length: %d\r\n\r\n%s", c.head, len(request), request); err != nil {
		t.Fatal(err)
	}
	answering := func(g goroutine) bool { return g.answers }
	writing := func(g goroutine) bool { return g.answers && g.writes }
	for len(back) == 0 {
		runtime.Gosched()
		if now := goroutines(); s.taken() != nil {
			back = passed(now, writing)
		}
	}
	c.conn.Close()
	return passed(s.taken(), answering), back
}

// A stackedWriter takes the stacks when something is first written.
type stackedWriter struct {
	bytes.Buffer
	stack []goroutine
}

func (w *stackedWriter) Write(p []byte) (int, error) {
	if w.stack == nil {
		w.stack = goroutines()
	}
	return w.Buffer.Write(p)
}

// runStacks answers a question by pgfsm run, and returns the functions on the way to the server and those on the way of the answer.
func runStacks(t *testing.T) (there, back []frame) {
	s := newStackedServer(t)
	dir := cli.Folder(t, "allowlist.json", `{"kb": ["echo"]}`, "pgfsm.yaml", "version: 1\nallowlist: allowlist.json\nledger: \"sqlite:pgfsm.db\"\n"+
		"servers: {kb: {type: http, url: \""+s.URL+"/mcp\"}}\n"+
		"planner: {mode: router, routes: [{id: echo, pattern: '^echo (\\w+)$', server: kb, tool: echo, args: {message: '${1}'}}]}\n")
	var out stackedWriter
	var errs bytes.Buffer
	code := run(t.Context(), []string{"run", "-c", filepath.Join(dir, "pgfsm.yaml"), "echo hello"}, world{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) (string, bool) { return "", false },
	})
	if code != exitYes {
		t.Fatalf("pgfsm run ended with %d: %s%s", code, &out, &errs)
	}
	commanded := func(g goroutine) bool {
		return g.frames[0].name == "cmd/pgfsm.run"
	}
	return passed(s.taken(), commanded), passed(out.stack, commanded)
}

// functionDocs returns the first sentence of the comment of each function of a file, by receiver and name.
func functionDocs(t *testing.T, file string) map[string]string {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repository, file), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	docs := make(map[string]string)
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			name = "(*" + strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + ")." + name
		}
		docs[name] = new(doc.Package).Synopsis(f.Doc.Text())
	}
	return docs
}

// oneCallTable shows functions in their order.
func oneCallTable(t *testing.T, functions []frame) string {
	var b strings.Builder
	b.WriteString("| | function | file | what it does |\n| --- | --- | --- | --- |\n")
	for i, f := range functions {
		docs := functionDocs(t, f.file)
		pkg, name, _ := strings.Cut(f.name[strings.LastIndex(f.name, "/")+1:], ".")
		about, ok := docs[pointerName(name)]
		if !ok { // the closure of a function that the compiler put into another
			pkg, name = filepath.Base(filepath.Dir(f.file)), name[strings.LastIndex(name, ".")+1:]
			about = docs[name]
		}
		fmt.Fprintf(&b, "| %d | `%s.%s` | [`%s`](../../%s) | %s |\n", i+1, pkg, name, f.file, f.file, about)
	}
	return b.String()
}

// pointerName is a method's name with the receiver as a pointer, which is how functionDocs names all of them.
func pointerName(name string) string {
	if receiver, method, ok := strings.Cut(name, "."); ok && !strings.HasPrefix(receiver, "(") {
		return "(*" + receiver + ")." + method
	}
	return name
}

// TestDocsOneCall holds the page to the stacks.
func TestDocsOneCall(t *testing.T) {
	page := filepath.Join(repository, oneCallPage)
	written := cli.Read(t, page)
	text := written
	for _, way := range []struct {
		name   string
		stacks func(*testing.T) (there, back []frame)
	}{{"serve", serveStacks}, {"run", runStacks}} {
		var there, back []frame
		t.Run(way.name, func(t *testing.T) { there, back = way.stacks(t) })
		distinct := slices.Clone(there)
		for _, f := range back {
			if !slices.Contains(distinct, f) {
				distinct = append(distinct, f)
			}
		}
		if len(distinct) > oneCallMax {
			t.Errorf("%s: %d functions are on the stacks of one call, want at most %d", way.name, len(distinct), oneCallMax)
		}
		for part, table := range map[string]string{ // in any order: each replaces a part of its own
			"there": oneCallTable(t, there), "back": oneCallTable(t, back),
			"count": fmt.Sprintf("%d distinct functions.\n", len(distinct)),
		} {
			begin, end := fmt.Sprintf("<!-- %s %s -->\n", way.name, part), fmt.Sprintf("<!-- end %s %s -->", way.name, part)
			before, rest, found := strings.Cut(text, begin)
			_, after, closed := strings.Cut(rest, end)
			if !found || !closed {
				t.Fatalf("%s has no part between %q and %q", oneCallPage, begin, end)
			}
			text = before + begin + table + end + after
		}
	}
	if *update {
		cli.Write(t, page, text)
		return
	}
	if diff := gocmp.Diff(written, text); diff != "" {
		t.Errorf("%s is not current; run go test ./cmd/pgfsm -run TestDocsOneCall -update (-page +stacks):\n%s", oneCallPage, diff)
	}
}
