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
	"time"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/llm"
	"pgfsm/mcp/upstream"
)

// ErrNoServer means that no server listed its tools, so there was no tool to call.
var ErrNoServer = errors.New("no server could be reached")

// A link is a session with one server, and the server's tools.
type link struct {
	server  upstream.Server
	session *sdk.ClientSession
	tools   []llm.Tool
}

// connectAll opens a session with every server, and lists all their tools. A server that cannot be
// reached is left out.
func (a *Agent) connectAll(ctx context.Context) (links []*link, err error) {
	errs := []error{ErrNoServer}
	for _, s := range a.Servers {
		l, err := openLink(ctx, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
			continue
		}
		links = append(links, l)
	}
	if len(links) == 0 {
		return nil, errors.Join(errs...)
	}
	return links, nil
}

func closeAll(links []*link) {
	for _, l := range links {
		l.session.Close() // its error is about a server that is being left anyway
	}
}

// openLink connects to a server and lists its tools. The session ends with ctx.
func openLink(ctx context.Context, s upstream.Server) (*link, error) {
	session, end := context.WithCancel(ctx)
	timer := time.AfterFunc(cmp.Or(s.ConnectTimeout, upstream.DefaultConnectTimeout), end)
	defer timer.Stop()
	l := &link{server: s}
	var err error
	if l.session, err = sdk.NewClient(&sdk.Implementation{Name: "naive-agent", Version: "1"}, nil).Connect(session,
		transportFor(s), nil); err != nil {
		return nil, err
	}
	if err = l.listTools(session); err != nil {
		l.session.Close() // the server is left anyway
		return nil, err
	}
	return l, nil
}

// listTools reads all pages of a server's tools. A tool whose inputSchema is no object is left out.
func (l *link) listTools(ctx context.Context) error {
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		schema, err := json.Marshal(t.InputSchema, json.Deterministic(true))
		if err != nil || len(schema) == 0 || schema[0] != '{' {
			continue
		}
		l.tools = append(l.tools, llm.Tool{
			Server:      l.server.Name,
			Name:        t.Name,
			Title:       t.Title,
			Description: t.Description,
			InputSchema: schema,
		})
	}
	return nil
}

// grace bounds the time for a child process to end after the end of its input.
const grace = time.Second

// transportFor is the transport to a server.
func transportFor(s upstream.Server) sdk.Transport {
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
		return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: httpClient(s)}
	}
	return &sdk.StreamableClientTransport{
		Endpoint:             s.URL,
		HTTPClient:           httpClient(s),
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
	}
}

// httpClient sends a server's headers to the server's origin and follows no redirect.
func httpClient(s upstream.Server) *http.Client {
	return &http.Client{
		Transport: &headers{server: s,
			next: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
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
