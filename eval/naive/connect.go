package naive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/llm"
	"pgfsm/mcp/upstream"
)

// A link is a session with one server, and the server's tools.
type link struct {
	server  upstream.Server
	session *sdk.ClientSession
	tools   []llm.Tool
}

// connect opens a session with every server, in parallel, and lists all their tools. A server that cannot be reached is left out;
// if all are left out, the error is [ErrNoServer] with each reason. The links have the order of the servers.
func (a *Agent) connect(ctx context.Context) ([]*link, error) {
	all := make([]*link, len(a.Servers))
	errs := make([]error, len(a.Servers))
	var wg sync.WaitGroup
	for i, s := range a.Servers {
		wg.Go(func() {
			if all[i], errs[i] = open(ctx, s); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", s.Name, errs[i])
			}
		})
	}
	wg.Wait()
	var links []*link
	for _, l := range all {
		if l != nil {
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		return nil, errors.Join(append([]error{ErrNoServer}, errs...)...)
	}
	return links, nil
}

func closeAll(links []*link) {
	var wg sync.WaitGroup
	for _, l := range links {
		wg.Go(func() { l.session.Close() }) // its error is about a server that is being left anyway
	}
	wg.Wait()
}

// open connects to a server and lists its tools. The session ends with ctx.
func open(ctx context.Context, s upstream.Server) (*link, error) {
	session, end := context.WithCancel(ctx)
	late := time.AfterFunc(cmp.Or(s.ConnectTimeout, upstream.DefaultConnectTimeout), end)
	defer late.Stop()
	l := &link{server: s}
	var err error
	if l.session, err = sdk.NewClient(&sdk.Implementation{Name: "naive-agent", Version: "1"}, nil).Connect(session, transport(s), nil); err != nil {
		return nil, err
	}
	if err = l.list(session); err != nil {
		l.session.Close() // the server is left anyway
		return nil, err
	}
	return l, nil
}

// list reads all pages of a server's tools. A tool whose inputSchema is no object is left out.
func (l *link) list(ctx context.Context) error {
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		schema, err := json.Marshal(t.InputSchema, json.Deterministic(true))
		if err != nil || len(schema) == 0 || schema[0] != '{' {
			continue
		}
		l.tools = append(l.tools, llm.Tool{
			Server: l.server.Name, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: schema,
		})
	}
	return nil
}

// resultOf is the result of a call as the model sees it: its structured content, or else its content.
func resultOf(r *sdk.CallToolResult) []byte {
	result := any(r.Content)
	if r.StructuredContent != nil {
		result = r.StructuredContent
	}
	doc, err := json.Marshal(result, json.Deterministic(true))
	if err != nil {
		return []byte("null")
	}
	return doc
}

// grace is how long a child process may take to end after its input has.
const grace = time.Second

// transport is the transport to a server.
func transport(s upstream.Server) sdk.Transport {
	switch s.Type {
	case upstream.TypeStdio:
		cmd := exec.Command(s.Command, s.Args...)
		for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} {
			if v, ok := os.LookupEnv(name); ok {
				cmd.Env = append(cmd.Env, name+"="+v)
			}
		}
		for _, e := range s.Env {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
		return &sdk.CommandTransport{Command: cmd, TerminateDuration: grace}
	case upstream.TypeSSE:
		return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: client(s)}
	}
	return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client(s), MaxRetries: -1, DisableStandaloneSSE: true}
}

// client sends a server's headers to the server's origin and follows no redirect.
func client(s upstream.Server) *http.Client {
	return &http.Client{
		Transport:     &headers{server: s, next: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}
}

// headers adds the headers that a server is configured with.
type headers struct {
	server upstream.Server
	next   http.RoundTripper
}

func (d *headers) RoundTrip(req *http.Request) (*http.Response, error) {
	home, err := url.Parse(d.server.URL)
	if err != nil || req.URL.Scheme != home.Scheme || req.URL.Host != home.Host {
		return nil, fmt.Errorf("%s is not where %s is configured to be", req.URL.Host, d.server.Name)
	}
	out := req.Clone(req.Context())
	for _, h := range d.server.Headers {
		out.Header.Set(h.Name, h.Value)
	}
	return d.next.RoundTrip(out)
}
