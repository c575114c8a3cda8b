package setup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/safefile"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/lint"
)

// watchInterval is the interval at which [Reloader.Watch] reads the files. Watch reports a change
// if the next reading finds the same.
const watchInterval = 2 * time.Second

// testsFile is the name of the policy tests that a reload runs, in the folder of the policy file.
const testsFile = "tests.yaml"

// A Reloader reads the files of an open configuration again. It is safe for concurrent use.
type Reloader struct {
	identity *runner.Identity // the providers at the start
	started  *Setup

	mu     sync.Mutex
	active *Setup
	files  map[string]digest // files of the active configuration, and of the last one read
	due    bool              // the configuration read last is not active yet
}

// NewReloader returns a Reloader for the configuration that a service started with. The embedded
// demo has no files. i may be nil.
func NewReloader(s *Setup, i *runner.Identity) *Reloader {
	r := &Reloader{identity: i, started: s, active: s}
	files := newReading()
	o := s.options
	o.Config, o.read = s.From, files.readFile
	candidate, err := r.judgeFiles(o, files) // finds out which files the configuration has
	r.files = files.digests
	// due: the files have changed since the start.
	r.due = err == nil && len(differingKeys(s, candidate.Setup, false)) > 0
	return r
}

// A digest is the hash of a file's content, or of the error that reading it returned.
type digest [sha256.Size]byte

// A reading notes the files that are read, with digests of their contents.
type reading struct{ digests map[string]digest }

func newReading() *reading { return &reading{make(map[string]digest)} }

func (r *reading) readFile(path string) ([]byte, error) {
	text, err := safefile.ReadTrusted(path)
	d := digestOf(text, err)
	if former, known := r.digests[path]; known && former != d {
		return nil, errChanging
	}
	r.digests[path] = d
	return text, err
}

func digestOf(text []byte, err error) digest {
	if err != nil {
		text = []byte("\x00" + err.Error())
	}
	return sha256.Sum256(text)
}

var errChanging = errors.New("it changed while the configuration was read; reload again when it is complete")

// checkUnchanged reads all files again and returns an error if one changed. A mix of old and new
// files is a configuration that no operator wrote.
func (r *reading) checkUnchanged() error {
	for _, path := range slices.Sorted(maps.Keys(r.digests)) {
		if text, err := safefile.ReadTrusted(path); digestOf(text, err) != r.digests[path] {
			return fmt.Errorf("%s: %w", path, errChanging)
		}
	}
	return nil
}

// Read implements [runner.Reload].
func (r *Reloader) Read() (*runner.Next, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files := newReading()
	o := r.active.options
	o.Config, o.Closed, o.read = r.active.From, false, files.readFile
	candidate, err := r.judgeFiles(o, files)
	if err == nil {
		err = files.checkUnchanged()
	}
	r.due = false
	maps.Copy(r.files, files.digests)
	if err != nil {
		return nil, err
	}
	r.files = files.digests

	next := r.nextConfig(candidate)
	r.due = len(next.Changed) > 0 // due stays set until the configuration is active, so Watch tries again
	return next, nil
}

// A judged configuration has been read and has passed lint, its claims and its tests.
type judged struct {
	*Setup
	warnings []string
	tests    int
	proved   []string // the ids of claims
}

// judgeFiles reads and judges the configuration.
func (r *Reloader) judgeFiles(o Options, files *reading) (*judged, error) {
	loaded, from, err := Load(o)
	if err != nil {
		return nil, err
	}
	candidate := &judged{Setup: &Setup{Secrets: r.active.Secrets}, warnings: loaded.Warnings}
	if err := candidate.openLoaded(o, loaded, from); err != nil {
		return nil, err
	}
	if err := candidate.openConnections(); err != nil {
		return nil, err
	}
	candidate.Upstreams = r.active.Upstreams.Replace(candidate.Servers, candidate.upstreamLimits())
	candidate.warnings = append(candidate.warnings, candidate.Doubts()...)
	catalog, warning, err := pins.Stored(candidate.Bundle, candidate.Allowlists())
	if err != nil {
		return nil, err
	}
	if warning != "" {
		candidate.warnings = append(candidate.warnings, warning)
	}
	stored, _, err := pins.Stored(r.active.Bundle, r.active.Allowlists())
	if err != nil { // the active configuration's files may have changed since
		stored = nil
	}
	if err := r.lintJudged(candidate, catalog, stored); err != nil {
		return nil, err
	}
	if err := r.proveJudged(candidate, catalog, stored); err != nil {
		return nil, err
	}
	return candidate, candidate.runTests(catalog, files)
}

// lintJudged returns the errors that lint finds. Errors that the active configuration has, too, are
// warnings only: otherwise nobody could reload a configuration that the service started with such
// an error.
func (r *Reloader) lintJudged(candidate *judged, catalog, stored *policy.Catalog) error {
	var failed []error
	// Only errors that the active configuration does not have refuse the new one.
	formerFindings := lint.Lint(r.active.Bundle.Content(), stored)
	for _, f := range lint.Lint(candidate.Bundle.Content(), catalog) {
		text := fmt.Sprintf("lint: [%s] %s", f.Code, candidate.Loaded.LintError(f))
		isSame := func(b lint.Finding) bool {
			return b.Code == f.Code && b.Policy == f.Policy && b.Key == f.Key && b.Problem == f.Problem
		}
		switch {
		case f.Severity == lint.Note:
		case f.Severity == lint.Error && !slices.ContainsFunc(formerFindings, isSame):
			failed = append(failed, errors.New(text))
		default:
			candidate.warnings = append(candidate.warnings, text)
		}
	}
	return errors.Join(failed...)
}

// runTests runs the policy tests beside the policy, if there are any.
func (s *judged) runTests(catalog *policy.Catalog, files *reading) error {
	if s.Loaded.PolicyPlaces == nil {
		return nil
	}
	path := filepath.Join(filepath.Dir(s.Loaded.PolicyPlaces.File()), testsFile)
	if _, err := files.readFile(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	timestamp := time.Now().UTC().Format(policy.TimeForm)
	report, err := explain.New(s.Bundle, catalog, false, timestamp).Test([]string{path}, files.readFile)
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range report.Tests {
		if !t.OK {
			failed = append(failed, fmt.Errorf("%s:%d: the test %q: %s at the gate %s, want %s: %s", t.File, t.Line,
				t.Name, t.Got, t.Gate, t.Want, t.Reason))
		}
	}
	s.tests = len(report.Tests)
	return errors.Join(failed...)
}

// nextConfig returns the service's part of a configuration.
func (r *Reloader) nextConfig(candidate *judged) *runner.Next {
	active := r.active
	if former, current := &active.Loaded.Identity,
		&candidate.Loaded.Identity; !reflect.DeepEqual(r.started.Loaded.Identity.Issuers, current.Issuers) {
		// The tokens of the former issuers are valid until a restart, so their requirements stay.
		current.Scopes, current.Required = former.Scopes, former.Required || current.Required
	}

	n := &runner.Next{
		Warnings: candidate.warnings,
		Tests:    candidate.tests,
		Proved:   candidate.proved,
		Changed:  differingKeys(active, candidate.Setup, false),
		Restart:  differingKeys(r.started, candidate.Setup, true),
	}

	i := r.identity
	if i != nil {
		i = &runner.Identity{
			Providers: i.Providers,
			Issuers:   i.Issuers,
			SignIn:    i.SignIn,
			Scopes:    candidate.Loaded.Identity.Scopes,
			Speakers:  candidate.Loaded.Identity.Speakers,
			May:       candidate.Loaded.Identity.May,
		}
	}

	// Listeners and identity providers are those of the start; everything else is new.
	candidate.Loaded.Serve = keptServe(r.started.Loaded.Serve, candidate.Loaded.Serve)
	n.Config = candidate.Served(i)
	n.Activated = func() {
		candidate.Secrets.Put(candidate.Setup, candidate.secrets)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.active = candidate.Setup
		r.due = false
	}

	n.Retired = func() { candidate.Secrets.Put(active, nil) }
	return n
}

// keptServe returns now with the values at the start for keys that need a restart.
func keptServe(started, next config.Serve) config.Serve {
	next.Listen, next.Admin, next.PublicURL, next.AdminURL, next.TLS = started.Listen, started.Admin, started.PublicURL,
		started.AdminURL, started.TLS
	next.Socket, next.Record, next.Sessions, next.Hosts, next.RemindBefore = started.Socket, started.Record, started.Sessions, started.Hosts,
		started.RemindBefore
	return next
}

// needRestart has the keys whose new values need a restart.
var needRestart = []string{
	"approvals.hooks", "approvals.remind_before", "checkpoints", "identity.issuers", "ledger", "serve.admin",
	"serve.admin_url", "serve.hosts",
	"serve.listen", "serve.public_url", "serve.record", "serve.sessions", "serve.socket", "serve.tls", "telemetry.otlp",
	"traces.dir",
}

// keyValues returns the values of the keys of a configuration and its files.
func (s *Setup) keyValues() map[string]any {
	c, loaded := s.Bundle.Content(), s.Loaded
	serve, identity := &loaded.Serve, &loaded.Identity
	namedLedger := loaded.Ledger
	if loaded.DefaultLedger {
		namedLedger = "" // traces.dir says where it is
	}

	return map[string]any{
		"allowlist":               []any{c.Allowlist, c.Pins, s.Allowlists(), loaded.Closed != nil},
		"approvals":               []any{serve.Hold, serve.OnPending},
		"approvals.hooks":         loaded.Hooks,
		"approvals.remind_before": serve.RemindBefore,
		"catalog_max_age":         serve.CatalogMaxAge,
		"checkpoints":             loaded.Checkpoints,
		"connections":             []any{s.people, loaded.ConnectionIdle, peopleOf(loaded)},
		"claims":                  comparableClaims(loaded.Claims, c.Risk),
		"env":                     c.Env,
		"grants":                  c.Grants,
		"identity":                []any{c.Identity, identity.Required, identity.Scopes, identity.Speakers, identity.May},
		"identity.issuers":        identity.Issuers,
		"input":                   c.Input,
		"labels":                  c.Labels,
		"ledger":                  namedLedger,
		"ledger_retention":        loaded.Retention,
		"limits":                  []any{c.Limits, serve.Rate, serve.Held, serve.ServerSessions},
		"outputs":                 c.Outputs,
		"planner":                 []any{c.Planner, s.llmKey},
		"policy":                  c.Policy,
		"risk":                    c.Risk,
		"roles":                   c.Roles,
		"serve.admin":             serve.Admin,
		"serve.admin_url":         serve.AdminURL,
		"serve.claim_within":      serve.ClaimWithin,
		"serve.decide_url":        serve.DecideURL,
		"serve.denials":           serve.Denials,
		"serve.hosts":             serve.Hosts,
		"serve.listen":            serve.Listen,
		"serve.public_url":        serve.PublicURL,
		"serve.record":            serve.Record,
		"serve.report_within":     serve.ReportWithin,
		"serve.sessions":          serve.Sessions,
		"serve.socket":            serve.Socket,
		"serve.tls":               serve.TLS,
		"servers":                 []any{c.Servers, serve.Expose, serve.ToolReports},
		"summary":                 c.Summary,
		"telemetry.otlp":          s.OTLP,
		"traces.dir":              loaded.TracesDir,
	}
}

// differingKeys returns the keys, sorted, whose values differ: those that need a restart, or the
// others.
func differingKeys(from, to *Setup, restart bool) (keys []string) {
	former := from.keyValues()
	for key, value := range to.keyValues() {
		equal := reflect.DeepEqual(former[key], value)
		if key == "servers" {
			// Compares secrets, too.
			equal = equal && slices.EqualFunc(from.Servers, to.Servers, upstream.Server.Equal)
		}
		if !equal && slices.Contains(needRestart, key) == restart {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Close closes the sessions with the servers of the active configuration.
func (r *Reloader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.active.Upstreams.Close() // Close always returns nil
}

// Watch calls reload when the files' contents changed since the last reading, until ctx ends. It
// follows symbolic links, so it sees changes of a Kubernetes ConfigMap.
func (r *Reloader) Watch(ctx context.Context, reload func()) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var last map[string]digest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stale, digests := r.readFiles()
		if stale && maps.Equal(last, digests) {
			reload()
		}
		last = digests
	}
}

// readFiles returns the current digests of the files, and whether a reload is due.
func (r *Reloader) readFiles() (stale bool, digests map[string]digest) {
	r.mu.Lock()
	files, due := maps.Clone(r.files), r.due
	r.mu.Unlock()
	digests = make(map[string]digest, len(files))
	for path := range files { // in any order: each is independent
		digests[path] = digestOf(safefile.ReadTrusted(path))
	}
	return due || !maps.Equal(files, digests), digests
}
