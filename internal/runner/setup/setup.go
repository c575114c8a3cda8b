// Package setup opens a configuration for a [runner.Runner]: it finds the file, reads it, compiles
// the bundle, and makes the planner, the summarizer and the sessions with servers.
package setup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"os/user"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/safefile"
	"pgfsm/internal/secret"
	"pgfsm/internal/telemetry"
	"pgfsm/llm"
	"pgfsm/mcp/demo"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/hooks"
)

// A Setup is an open configuration. Close it.
type Setup struct {
	Loaded     *config.Loaded
	From       string // the configuration file's path, or [EmbeddedDemo]
	Bundle     *policy.Bundle
	Planner    llm.Planner
	Summarizer llm.Summarizer
	Secrets    *secret.Masker
	Servers    []upstream.Server
	Upstreams  *upstream.Upstreams // for the embedded demo: nil before Start
	Fleet      *demo.Fleet         // the servers of the embedded demo, after Start
	OTLP       *telemetry.OTLP     // nil: no spans are exported

	Connections *api.Connectable // the accounts of people, after OpenConnections; nil: there are none
	people      *config.ResolvedConnections

	options Options
	secrets []string // the configuration's secrets, which Secrets masks
	llmKey  string
}

// Open opens a configuration that [Load] returned. It starts nothing and connects to nothing.
func Open(o Options, loaded *config.Loaded, from string) (s *Setup, err error) {
	s = &Setup{Secrets: secret.New(nil)}
	if err = s.openLoaded(o, loaded, from); err != nil {
		return nil, err
	}
	s.Secrets.Put(s, s.secrets)
	if s.OTLP != nil { // a reload does not change OTLP
		s.Secrets.Put(s.OTLP, slices.Sorted(maps.Values(s.OTLP.Headers)))
	}
	if !s.IsDemo() {
		s.newUpstreams()
	}
	return s, nil
}

// openLoaded opens a configuration without connections to servers. It does not mask secrets yet.
func (s *Setup) openLoaded(o Options, loaded *config.Loaded, from string) (err error) {
	if err = s.compileBundle(o, loaded, from); err != nil {
		return err
	}
	resolved, err := loaded.Resolve(o.Getenv, o.readFile)
	if err != nil {
		return err
	}

	// Only now do references have values: the bundle above must not depend on secrets.
	s.secrets, s.llmKey = resolved.Secrets, resolved.LLMKey
	s.OTLP = collectorOf(resolved.OTLP)
	if s.Planner, s.Summarizer, err = llm.Configured(&s.Bundle.Content().Planner, resolved.LLMKey,
		s.Secrets); err != nil {
		return err
	}

	var serverUser *user.User
	if o.ServerUser != "" {
		if serverUser, err = user.Lookup(o.ServerUser); err != nil {
			return fmt.Errorf("--server-user: %w", err)
		}
	}

	for _, r := range resolved.Servers {
		s.Servers = append(s.Servers, upstream.Server{
			Name:           r.Name,
			Type:           r.Type,
			URL:            r.URL,
			Command:        r.Command,
			Args:           r.Args,
			Headers:        headersOf(r.Headers),
			Env:            headersOf(r.Env),
			Auth:           credentialsOf(r.Auth),
			ConnectTimeout: time.Duration(r.ConnectTimeout) * time.Millisecond,
			Timeout:        time.Duration(r.Timeout) * time.Millisecond,
			TimeoutTotal:   time.Duration(r.TimeoutTotal) * time.Millisecond,
			IdleTimeout:    time.Duration(r.IdleTimeout) * time.Millisecond,
			Sessions:       r.Sessions,
			ToolList:       r.ToolList,
			User:           serverUser,
			Person:         r.Person != nil,
		})
	}

	return nil
}

// OpenConnections reads the keys of people's connections, which only a service needs.
func (s *Setup) OpenConnections() error {
	err := s.openConnections()
	s.Secrets.Put(s, s.secrets)
	return err
}

func (s *Setup) openConnections() error {
	resolved, err := s.Loaded.ResolveConnections(s.options.Getenv, s.options.readFile)
	if err != nil || resolved == nil {
		return err
	}
	s.secrets, s.people = append(s.secrets, resolved.Secrets...), resolved
	s.Connections = Connections(s.Loaded, resolved, func(token string) { s.Upstreams.MaskAccount(token) })
	return nil
}

// compileBundle makes the bundle.
func (s *Setup) compileBundle(o Options, loaded *config.Loaded, from string) (err error) {
	s.Loaded, s.From, s.options = loaded, from, o
	if model := loaded.Content.Planner.LLM; model != nil {
		model.Prompt = llm.PromptVersion
	}
	if s.IsDemo() { // the demo's servers choose their ports at the start; the bundle must not depend on them
		for i := range loaded.Content.Servers {
			loaded.Content.Servers[i].URL = "embedded:" + loaded.Content.Servers[i].Name
		}
	}
	s.Bundle, err = policy.Compile(loaded.Content)
	return err
}

// Check opens a configuration even if references have no values here. missing lists the references
// without which the service cannot start.
func Check(o Options, loaded *config.Loaded, from string) (s *Setup, missing config.Errors, err error) {
	if s, err = Open(o, loaded, from); errors.As(err, &missing) {
		s = &Setup{}
		err = s.compileBundle(o, loaded, from)
	}
	_, hooks := loaded.ResolveHooks(o.Getenv, o.readFile)
	_, identity := loaded.ResolveIdentity(o.Getenv, o.readFile)
	_, ledger := loaded.LedgerURL(o.Getenv, o.readFile)
	_, connections := loaded.ResolveConnections(o.Getenv, o.readFile)
	for _, err := range []error{hooks, identity, ledger, connections} {
		var more config.Errors
		errors.As(err, &more)
		missing = append(missing, more...)
	}
	return s, missing, err
}

func credentialsOf(from *config.ClientCredentials) *upstream.ClientCredentials {
	if from == nil {
		return nil
	}
	return &upstream.ClientCredentials{
		TokenURL:     from.TokenURL,
		ClientID:     from.ClientID,
		ClientSecret: from.ClientSecret,
		Scopes:       from.Scopes,
		Key:          from.Signer,
		Alg:          from.Alg,
		KeyID:        from.KeyID,
		Issuer:       from.Issuer,
		Resource:     from.Resource,
		Audience:     from.Audience,
	}
}

func collectorOf(from *config.OTLP) *telemetry.OTLP {
	if from == nil {
		return nil
	}
	collector := &telemetry.OTLP{Endpoint: from.Endpoint, Headers: make(map[string]string),
		Sample: float64(from.SamplePercent) / config.MaxPercent}
	for _, p := range from.Headers {
		collector.Headers[p.Name] = p.Value
	}
	return collector
}

func headersOf(from []config.Pair) (headers []upstream.Header) {
	for _, p := range from {
		headers = append(headers, upstream.Header{Name: p.Name, Value: p.Value})
	}
	return headers
}

// IsDemo reports whether the configuration is the embedded demo's.
func (s *Setup) IsDemo() bool { return s.From == EmbeddedDemo }

// Copy returns a Setup with its own sessions. A Copy of the embedded demo has its own servers, too.
func (s *Setup) Copy() (*Setup, error) {
	c := *s
	c.Servers, c.Fleet, c.Upstreams = slices.Clone(s.Servers), nil, nil
	if s.IsDemo() {
		return &c, nil
	}
	c.newUpstreams()
	return &c, nil
}

// Start starts the servers of the embedded demo. Without it, Start does nothing: sessions are
// opened when they are needed.
func (s *Setup) Start(ctx context.Context) (err error) {
	if s.Upstreams != nil {
		return nil
	}
	free := slices.Repeat([]string{"127.0.0.1:0"}, len(s.Servers))
	if s.Fleet, err = demo.Listen(context.WithoutCancel(ctx), free); err != nil {
		return err
	}
	for i := range s.Servers {
		s.Servers[i].URL = s.Fleet.URL(s.Servers[i].Name, "sse")
	}
	s.newUpstreams()
	return nil
}

func (s *Setup) newUpstreams() {
	s.Upstreams = upstream.New(s.Servers, s.upstreamLimits(), upstream.Info{Name: "pgfsm", Version: s.options.Version},
		s.Secrets)
}

func (s *Setup) upstreamLimits() upstream.Limits {
	return upstream.Limits{ResultBytes: s.Bundle.Limits().ResultBytes, ServerSessions: s.Loaded.Serve.ServerSessions}
}

// Close closes the sessions, and the servers of the embedded demo.
func (s *Setup) Close() error {
	var errs []error
	if s.Upstreams != nil {
		errs = append(errs, s.Upstreams.Close())
	}
	if s.Fleet != nil {
		errs = append(errs, s.Fleet.Close())
	}
	return errors.Join(errs...)
}

// Runner returns options for a runner. They lack the ledger.
func (s *Setup) Runner() runner.Options { return runner.Options{Config: s.runnerConfig()} }

func (s *Setup) runnerConfig() runner.Config {
	return runner.Config{
		Bundle:     s.Bundle,
		Upstreams:  s.Upstreams,
		Planner:    s.Planner,
		Summarizer: s.Summarizer,
		Secrets:    s.Secrets,
		Serve:      s.Loaded.Serve,
		Recorded:   LedgerSettings(s.Loaded),

		Connections: s.Connections,
	}
}

// Allowlists returns the files that hold the pins; none for the embedded demo's allowlist.
func (s *Setup) Allowlists() []string {
	if s.IsDemo() && s.options.getenv("SAFE_ALLOWLIST_PATH") == "" {
		return nil
	}
	return s.Loaded.Allowlists()
}

// Served returns the configuration of a service, whose identity providers are i.
func (s *Setup) Served(i *runner.Identity) runner.Config {
	c := s.runnerConfig()
	c.Closed, c.Allowlists = s.Loaded.Closed, s.Allowlists()
	c.Identity, c.Required = i, s.Loaded.Identity.Required
	c.Claims = s.Loaded.Claims
	return c
}

// Hooks returns the web hooks of a configuration, with their secrets.
func Hooks(o Options, loaded *config.Loaded) (list []hooks.Hook, err error) {
	resolved, err := loaded.ResolveHooks(o.Getenv, safefile.ReadTrusted)
	for _, h := range resolved {
		list = append(list, hooks.Hook(h))
	}
	return list, err
}

// Doubts returns warnings about valid settings that are probably mistakes.
func (s *Setup) Doubts() (doubts []string) {
	c := s.Bundle.Content()
	allowed := make(map[string][]string)

	for _, a := range c.Allowlist {
		allowed[a.Server] = a.Tools
	}

	for _, server := range c.Servers {
		if len(allowed[server.Name]) == 0 {
			doubts = append(doubts, fmt.Sprintf("no tool of the server %q is on the allowlist: agents cannot call any of its tools", server.Name))
		}
		if server.Type != config.TypeStdio || strings.ContainsRune(server.Command, '/') {
			continue
		}
		if _, err := exec.LookPath(server.Command); err != nil {
			doubts = append(doubts, fmt.Sprintf("the command %q of the server %q is not in PATH", server.Command,
				server.Name))
		}
	}

	holds := func(p rules.Policy) bool { return p.Effect == rules.Pending || p.RequireApprovalIf != "" }
	if s.Loaded.ServesUnrecorded() && c.Policy != nil && slices.ContainsFunc(c.Policy.Policies, holds) {
		doubts = append(doubts, "a policy can hold calls, but the gateway refuses them, because serve.record is none: remove that key")
	}

	for _, r := range c.Planner.Routes {
		if !slices.Contains(allowed[r.Server], r.Tool) {
			doubts = append(doubts, fmt.Sprintf("the route %q calls %q of %q, which is not allowed", r.ID, r.Tool,
				r.Server))
		}
	}

	// A server that confines itself to the client's roots lets the client choose the sandbox. A
	// configuration does not show which do.
	for _, e := range s.Loaded.Serve.Expose {
		process := func(server policy.Server) bool { return server.Name == e.Server && server.Type == config.TypeStdio }
		if e.Sessions == config.SessionsSession && slices.Contains(e.Words, "roots") &&
			slices.ContainsFunc(c.Servers, process) {
			doubts = append(doubts, fmt.Sprintf("servers.%s.expose passes the client's roots: a server that takes them in place of the folders "+
				"of its command line, as server-filesystem does, lets the client choose what it may touch; leave roots out", e.Server))
		}
	}

	return doubts
}
