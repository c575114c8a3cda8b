package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/llm"
	"pgfsm/mcp/toy"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/secret"
	"pgfsm/policy/visible"
	"pgfsm/safefile"
	"pgfsm/states"
)

// options are the flags of every command that works with a configuration.
type options struct {
	config  string
	json    bool
	planner string   // who makes the plan, in place of planner.mode
	grants  []string // files of grants for one run
	closed  bool     // an allowlist that cannot be read allows nothing, and is no error
	demo    bool     // without a configuration file that is named here, the embedded demo: none is looked for
}

func (o *options) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.config, "config", "c", "",
		"configuration file (default: PGFSM_CONFIG, ./pgfsm.yaml, the embedded demo)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
}

func (o *options) registerGrants(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.grants, "grant", nil,
		"a grant file that narrows this run; may be given again, and all must cover the call")
}

// with opens the configuration, does something with it, and closes all that was opened.
func (o *options) with(ctx context.Context, w world, do func(*app) error) error {
	a, err := open(w, o)
	if err != nil {
		return err
	}
	err = do(a)
	if closing := a.close(); closing != nil { // what was answered stays answered
		fmt.Fprintf(w.stderr, "pgfsm: warning: %s\n", visible.Lines(closing.Error()))
	}
	return err
}

// app is a configuration at work.
type app struct {
	w         world
	machine   *states.Machine
	bundle    *policy.Bundle
	planner   llm.Planner
	summary   llm.Summarizer
	servers   []upstream.Server
	secrets   *secret.Masker
	tracesDir string
	loaded    *config.Loaded

	config    string // where the configuration came from, for people
	flag      string // the configuration file that -c names
	demo      bool   // the configuration is the embedded one
	fleet     *toy.Fleet
	upstreams *upstream.Upstreams
}

// open reads the configuration. It starts nothing.
func open(w world, o *options) (*app, error) {
	loaded, from, err := load(w, o)
	if err != nil {
		return nil, err
	}
	if loaded.Content.Planner.LLM != nil {
		loaded.Content.Planner.LLM.Prompt = llm.PromptVersion
	}
	for _, warning := range loaded.Warnings {
		fmt.Fprintf(w.stderr, "pgfsm: warning: %s\n", visible.Text(warning))
	}
	demo := from == embeddedDemo
	a := &app{w: w, tracesDir: loaded.TracesDir, loaded: loaded, config: from, flag: o.config, demo: demo}
	if demo {
		embed(&loaded.Content)
	}
	if a.machine, err = states.NewMachine(); err != nil {
		return nil, err
	}
	if a.bundle, err = policy.Compile(loaded.Content); err != nil {
		return nil, err
	}
	resolved, err := loaded.Resolve(w.getenv, safefile.ReadTrusted)
	if err != nil {
		return nil, err
	}
	a.secrets = secret.New(resolved.Secrets)
	if a.planner, a.summary, err = llm.Configured(&a.bundle.Content().Planner, resolved.LLMKey, a.secrets); err != nil {
		return nil, err
	}
	for _, s := range resolved.Servers {
		a.servers = append(a.servers, upstream.Server{
			Name: s.Name, Type: s.Type, URL: s.URL, Command: s.Command, Args: s.Args,
			Headers: pairs(s.Headers), Env: pairs(s.Env), ConnectTimeout: time.Duration(s.ConnectTimeout) * time.Millisecond,
			Timeout: time.Duration(s.Timeout) * time.Millisecond, TimeoutTotal: time.Duration(s.TimeoutTotal) * time.Millisecond,
		})
	}
	if !demo {
		err = a.connect()
	}
	return a, err
}

func pairs(from []config.Pair) []upstream.Header {
	var to []upstream.Header
	for _, p := range from {
		to = append(to, upstream.Header{Name: p.Name, Value: p.Value})
	}
	return to
}

// embed says in the bundle that the demo's servers run inside this process, on ports that are chosen when they start:
// so all runs of the demo have one bundle.
func embed(c *policy.Content) {
	for i := range c.Servers {
		c.Servers[i].URL = "embedded:" + c.Servers[i].Name
	}
}

// embeddedDemo is what the demo is called where a configuration is named.
const embeddedDemo = "the embedded demo"

// load finds the configuration: the flag, PGFSM_CONFIG, pgfsm.yaml in the working directory, the embedded demo.
func load(w world, o *options) (loaded *config.Loaded, from string, err error) {
	over := config.Overrides{
		Allowlist: w.env("SAFE_ALLOWLIST_PATH"), TracesDir: w.env("SAFE_TRACE_DIR"), Planner: o.planner, Grants: o.grants, Closed: o.closed,
		LLM: &config.LLM{BaseURL: w.env("LLM_BASE_URL"), Model: w.env("LLM_MODEL"), APIKey: w.env("LLM_API_KEY")},
	}
	switch v := w.env("SAFE_SUMMARIZE"); v {
	case "", "0":
	case "1":
		over.Summary = policy.SummaryAlways
	default:
		return nil, "", fmt.Errorf("SAFE_SUMMARIZE is %q: use 1 to summarize every typed result, or leave it unset", v)
	}
	path := o.config
	if path == "" && !o.demo {
		path = w.env("PGFSM_CONFIG")
	}
	if path == "" && !o.demo {
		if _, err := os.Lstat(config.FileName); err == nil {
			path = config.FileName
		}
	}
	if path != "" {
		loaded, err = config.Load(path, safefile.ReadTrusted, over)
		return loaded, path, overridden(err, over.Allowlist)
	}
	inside := func(name string) ([]byte, error) {
		if name == over.Allowlist || slices.Contains(over.Grants, name) {
			return safefile.ReadTrusted(name)
		}
		return config.Demo.ReadFile(filepath.ToSlash(name))
	}
	loaded, err = config.Load(config.FileName, inside, over)
	return loaded, embeddedDemo, overridden(err, over.Allowlist)
}

// overridden says whose word it was where the configuration is not what names the allowlist.
func overridden(err error, allowlist string) error {
	var faults config.Errors
	if allowlist == "" || !errors.As(err, &faults) {
		return err
	}
	for _, f := range faults {
		if f.Key == "allowlist" || f.File == allowlist {
			return fmt.Errorf("%w\n(SAFE_ALLOWLIST_PATH names the allowlist: %s)", err, allowlist)
		}
	}
	return err
}

// start makes what can be connected: for the demo, its servers begin to listen.
func (a *app) start(ctx context.Context) error {
	if a.upstreams != nil {
		return nil
	}
	var err error
	free := slices.Repeat([]string{"127.0.0.1:0"}, len(a.servers))
	if a.fleet, err = toy.Listen(context.WithoutCancel(ctx), free); err != nil {
		return err
	}
	for i := range a.servers {
		a.servers[i].URL = a.fleet.URL(a.servers[i].Name, "sse")
	}
	return a.connect()
}

// connect judges the servers as package mcp does. It starts and connects nothing.
func (a *app) connect() (err error) {
	limits := upstream.Limits{ResultBytes: a.bundle.Limits().ResultBytes}
	a.upstreams, err = upstream.New(a.servers, limits, upstream.Info{Name: "pgfsm", Version: version()}, a.secrets)
	return err
}

func (a *app) close() error {
	var errs []error
	if a.upstreams != nil {
		errs = append(errs, a.upstreams.Close())
	}
	if a.fleet != nil {
		errs = append(errs, a.fleet.Close())
	}
	return errors.Join(errs...)
}

// actor is who asks: the user of the operating system.
func actor() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf(policy.LocalUser+"uid-%d", os.Getuid())
	}
	return policy.LocalUser + u.Username
}
