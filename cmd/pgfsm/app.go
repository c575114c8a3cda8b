package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/telemetry"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger/stores"
)

// options are the flags of every command that works with a configuration.
type options struct {
	config  string
	json    bool
	planner string   // replaces planner.mode
	grants  []string // grant files for one run
	closed  bool     // an unreadable allowlist allows nothing, and is not an error
	demo    bool     // use the embedded demo if no flag names a configuration; no file is searched

	serverUser string // runs the commands of stdio servers; empty: the user of this process
}

func (o *options) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.config, "config", "c", "",
		"configuration file (default: PGFSM_CONFIG, ./pgfsm.yaml, the embedded demo)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
}

func (o *options) addGrantFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.grants, "grant", nil,
		"a grant file that narrows this run; may be given again, and all must cover the call")
}

func (o *options) addServerUserFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.serverUser, "server-user", "",
		"the user that runs the commands of stdio servers, such as the service's user (needs root)")
}

func (o *options) setupOptions(w world) setup.Options {
	return setup.Options{
		Config:     o.config,
		Demo:       o.demo,
		Planner:    o.planner,
		Grants:     o.grants,
		Closed:     o.closed,
		ServerUser: o.serverUser,
		Getenv:     w.getenv,
		Version:    cli.Version(),
	}
}

// loadConfig reads the configuration. source names its file, or the embedded demo.
func loadConfig(w world, o *options) (loaded *config.Loaded, source string, err error) {
	return setup.Load(o.setupOptions(w))
}

// app holds an open configuration.
type app struct {
	*setup.Setup
	w    world
	flag string // the configuration file of -c
	json bool
}

// openApp opens the configuration. It starts nothing.
func openApp(w world, o *options) (*app, error) {
	loaded, source, err := loadConfig(w, o)
	if err != nil {
		return nil, err
	}
	w.warnAll(loaded.Warnings)
	s, err := setup.Open(o.setupOptions(w), loaded, source)
	return &app{s, w, o.config, o.json}, err
}

func (w world) warnAll(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintf(w.stderr, "pgfsm: warning: %s\n", visible.Line(warning))
	}
}

// withApp opens the configuration, calls do, and closes the configuration.
func (o *options) withApp(w world, do func(*app) error) error {
	a, err := openApp(w, o)
	if err != nil {
		return err
	}
	err = do(a)
	a.closeOrWarn()
	return err
}

// newCommand makes a command that opens the configuration, and calls do.
func (o *options) newCommand(w world, use string, args cobra.PositionalArgs,
	do func(ctx context.Context, a *app, args []string) error) *cobra.Command {
	cmd := newCommand(use, args, func(cmd *cobra.Command, args []string) error {
		return o.withApp(w, func(a *app) error { return do(cmd.Context(), a, args) })
	})
	o.addFlags(cmd)
	return cmd
}

// printDocument prints a document as JSON or with the function text, and returns the exit code.
func (a *app) printDocument(doc any, code int, text func(out io.Writer, k ink)) error {
	return a.w.printDocument(a.json, doc, code, text)
}

// printDocument prints a document as JSON or with the function text, and returns the exit code.
func (w world) printDocument(asJSON bool, doc any, code int, text func(out io.Writer, k ink)) error {
	if asJSON {
		return errors.Join(cli.PrintJSON(w.stdout, doc), cli.Exit(code))
	}
	text(w.stdout, newInk(w))
	return cli.Exit(code)
}

// closeOrWarn closes everything. It only warns about an error, because the command's result is
// already complete.
func (a *app) closeOrWarn() {
	if err := a.Close(); err != nil {
		fmt.Fprintf(a.w.stderr, "pgfsm: warning: %s\n", visible.Lines(err.Error()))
	}
}

// runnerOptions returns the options of a runner. Without a ledger, it records nothing.
func (a *app) runnerOptions(l *openedLedger) runner.Options {
	o := a.Runner()
	o.Report = a.w.warn
	if o.Unrecorded = l == nil; !o.Unrecorded {
		o.Ledger = l.Ledger
	}
	return o
}

// newTracer returns the configured tracer; nil if there is none.
func (a *app) newTracer(report func(line string)) (*telemetry.Tracer, error) {
	if a.OTLP == nil {
		return nil, nil
	}
	return telemetry.NewTracer(*a.OTLP, cli.Version(), a.Secrets.String, report)
}

// shutDown exports the remaining spans, even if ctx is done. The tracer reports spans that it
// cannot export.
func shutDown(ctx context.Context, t *telemetry.Tracer) { _ = t.Shutdown(context.WithoutCancel(ctx)) }

// withRunner opens the ledger, ends left-over runs, calls do, and closes the ledger. The ledger is
// opened before servers start: without it nothing is called.
func (a *app) withRunner(ctx context.Context, do func(*runner.Runner, *openedLedger) error) error {
	l, err := openConfigured(a.w, a.Loaded, stores.ToWrite)
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return l.closeAfter(err)
	}
	r, err := runner.New(a.runnerOptions(l))
	if err != nil {
		return l.closeAfter(err)
	}
	r.Recover(ctx)
	return l.closeAfter(do(r, l))
}

// localActor returns the user of the operating system.
func localActor() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf(policy.LocalUser+"uid-%d", os.Getuid())
	}
	return policy.LocalUser + u.Username
}
