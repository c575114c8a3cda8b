package runner

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/policy"
	"pgfsm/policy/ruling"
	"pgfsm/traces/backtest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// A Reload reads the configuration again, and checks that it can become active. It changes nothing.
// The error is for the operator.
type Reload func() (*Next, error)

// A Next is a configuration that can become the active one.
type Next struct {
	Config   Config
	Changed  []string // changed keys of the configuration, sorted; empty: it equals the active one
	Restart  []string // changed keys that need a restart, sorted; Config has their former values
	Warnings []string
	Tests    int      // the number of passed policy tests
	Proved   []string // the ids of proved claims

	Activated func() // runs before the first request can use Config
	Retired   func() // runs when no request uses a former Config any more
}

// retireTime bounds how long an ending service waits for the requests of former configurations: by
// then they have been cut off.
const retireTime = 5 * time.Second

// reloading holds the state that the reloads of a service share.
type reloading struct {
	mu       sync.Mutex // held by the reload under way
	ended    atomic.Bool
	retiring sync.WaitGroup  // former configurations that are in use
	retired  <-chan struct{} // closed when all former configurations are retired; nil before the first reload
}

// errEnding refuses a reload while the service ends.
var errEnding = errors.New("the service is ending")

// Reload reads the operator's files and makes their configuration active. Runs under way keep the
// configuration that they began with. After an error, the former configuration stays active. The
// error is an [api.ReloadError] if the files cannot be used, and another if the ledger did not
// record the reload or refused its caller. After [ledger.ErrUnsettled], the ledger may name the new
// bundle nevertheless. by is set for [ledger.CauseReload] only.
func (s *Service) Reload(ctx context.Context, cause ledger.Cause, by *ledger.Caller) (present.Reload, error) {
	report, former, err := s.reloadNow(ctx, cause, by)
	if former != nil {
		report.Compared = s.compareRecorded(ctx, former, s.runner.Configured().Bundle)
	}
	s.logReload(cause, by, &report, err)
	return report, err
}

// reloadFor calls Reload for a caller of the admin API.
func (s *Service) reloadFor(ctx context.Context, by ledger.Caller) (present.Reload, error) {
	return s.Reload(context.WithoutCancel(ctx), ledger.CauseReload, &by)
}

// reloadNow reloads like Reload, without the comparison. It returns the replaced bundle as former;
// nil if it replaced none.
func (s *Service) reloadNow(ctx context.Context, cause ledger.Cause, by *ledger.Caller) (report present.Reload,
	former *policy.Bundle, err error) {
	s.reload.mu.Lock()
	defer s.reload.mu.Unlock()
	active := s.runner.Configured()
	report = present.Reload{
		SchemaVersion: present.SchemaVersion, Bundle: active.Bundle.Digest(), Previous: active.Bundle.Digest(),
	}
	refuse := func(reason error) (present.Reload, *policy.Bundle, error) {
		return report, nil, &api.ReloadError{Why: reason}
	}
	next, err := s.options.Reload()
	if err != nil {
		return refuse(err)
	}
	report.Restart, report.Warnings, report.Tests = next.Restart, next.Warnings, next.Tests
	if len(next.Changed) == 0 {
		return report, nil, nil
	}

	configured := s.runner.withConfig(s.withDecideURL(next.Config))
	var replacement gateway.Replacement
	if s.gateway != nil {
		settings, err := s.gatewayConfig(configured)
		if err != nil {
			return refuse(err)
		}
		if replacement, err = s.gateway.Prepare(settings); err != nil {
			return refuse(err)
		}
	}

	if s.reload.ended.Load() {
		return refuse(errEnding)
	}

	// The ledger names the bundle before any request uses it.
	if l := s.runner.options.Ledger; l != nil {
		reason := ledger.ActivationReason{
			Cause:    cause,
			By:       by,
			Previous: active.Bundle.Digest(),
			Changed:  next.Changed,
			Proved:   next.Proved,

			Settings: configured.Recorded,
		}
		if err := l.RecordActivation(ctx, configured.Bundle, reason); err != nil {
			return report, nil, err
		}
	}

	s.makeActive(ctx, configured, replacement, next)
	report.Bundle, report.Changed = configured.Bundle.Digest(), next.Changed
	report.Warnings = append(report.Warnings, s.runner.warnUnusable(ctx, configured.Connections)...)

	return report, active.Bundle, nil
}

// makeActive makes a configuration the active one.
func (s *Service) makeActive(ctx context.Context, configured *ConfiguredRunner, replacement gateway.Replacement,
	next *Next) {
	next.Activated()
	var relayed <-chan struct{}
	if s.gateway != nil {
		relayed = s.gateway.Replace(replacement)
	}

	former, idle := s.runner.active.Replace(configured)
	if slices.Contains(next.Changed, "connections") {
		s.endAccounts(func(string) bool { return false }, func(string) bool { return false }) // their links have former settings
	}
	earlier, retired := s.reload.retired, make(chan struct{})
	s.reload.retired = retired
	s.reload.retiring.Go(func() {
		defer close(retired)
		if earlier != nil { // an earlier configuration may share servers with the former one
			<-earlier
		}
		<-idle
		if relayed != nil {
			<-relayed
		}
		if former.Upstreams != nil {
			former.Upstreams.CloseReplaced(configured.Upstreams)
		}
		next.Retired()
	})

	if s.worker != nil {
		s.worker.compareBundles(ctx)
	}
}

// awaitRetired waits for the requests of former configurations.
func (r *reloading) awaitRetired() {
	retired := make(chan struct{})
	go func() {
		r.mu.Lock() // a reload under way may add a former configuration
		defer r.mu.Unlock()
		r.retiring.Wait()
		close(retired)
	}()
	select {
	case <-retired:
	case <-time.After(retireTime):
	}
}

// compareRecorded judges the newest calls of the ledger by the policies and risk rules of two
// bundles. It returns nil if both bundles have the same rules, or there is no ledger.
func (s *Service) compareRecorded(ctx context.Context, old, active *policy.Bundle) *present.ReloadCompared {
	l := s.runner.options.Ledger
	oldContent, newContent := old.Content(), active.Content()
	if l == nil || oldContent.Policy == nil || newContent.Policy == nil ||
		reflect.DeepEqual(oldContent.Policy, newContent.Policy) && reflect.DeepEqual(oldContent.Risk, newContent.Risk) {
		return nil
	}

	// Each recorded call is judged twice: by the former rules and by the new ones.
	judge := func(c *policy.Content) *ruling.Judge {
		var claims []string
		if c.Identity != nil {
			claims = c.Identity.Claims
		}
		return ruling.NewJudge(c.Policy, c.Risk, claims...)
	}

	c := backtest.Comparer{Old: judge(oldContent), New: judge(newContent), Replayer: s.runner.replayer}
	report, err := c.CompareLog(ctx, l, "", backtest.ForReload)
	if err != nil {
		s.runner.log.Warn("the recorded calls cannot be compared", "error", visible.Error(err))
		return nil
	}

	compared := &present.ReloadCompared{
		Calls:   report.Judged,
		Since:   report.Since,
		Partial: report.Partial,
		Kinds:   make(map[string]int),
		Skipped: report.Unusable + len(report.Unknown),
	}

	for _, k := range report.Kinds {
		if k.Calls > 0 {
			compared.Kinds[k.Kind] = k.Calls
		}
	}

	for _, call := range report.Changed {
		if call.Old == call.New {
			continue
		}
		if compared.Otherwise++; len(compared.Runs) < present.MaxReloadRuns {
			compared.Runs = append(compared.Runs, present.ReloadRun{
				Run:    call.RunID,
				Tool:   call.Tool,
				Before: call.Old,
				After:  call.New,
				By:     call.By,
			})
		}
	}

	return compared
}

// logReload logs the result of a reload.
func (s *Service) logReload(cause ledger.Cause, by *ledger.Caller, report *present.Reload, err error) {
	actor, log := "", s.runner.log
	if by != nil {
		actor = by.Name
	}

	if err != nil {
		log.Error("reload failed: the former configuration stays active", "cause", string(cause), "actor", actor,
			"reason", visible.Error(err))
		return
	}

	for _, w := range report.Warnings {
		log.Warn("reload", "warning", visible.Text(w))
	}

	if len(report.Restart) > 0 {
		log.Warn("reload: these keys keep their former values until a restart", "keys",
			strings.Join(report.Restart, " "))
	}

	if len(report.Changed) == 0 {
		log.Info("reload: nothing has changed", "cause", string(cause), "actor", actor, "bundle", string(report.Bundle))
		return
	}

	values := []any{
		"cause", string(cause), "actor", actor, "bundle", string(report.Bundle), "previous", string(report.Previous),
		"changed", strings.Join(report.Changed, " "), "tests", report.Tests,
	}
	if c := report.Compared; c != nil {
		values = append(values, "compared", c.Calls, "decided_otherwise", c.Otherwise)
	}

	log.Info("reload", values...)
}
