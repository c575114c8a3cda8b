package runner

import (
	"context"
	"errors"
	"reflect"
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
	Tests    int // the number of passed policy tests

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
	done, former, err := s.reloadNow(ctx, cause, by)
	if former != nil {
		done.Compared = s.compareRecorded(ctx, former, s.runner.Configured().Bundle)
	}
	s.logReload(cause, by, &done, err)
	return done, err
}

// reloadFor calls Reload for a caller of the admin API.
func (s *Service) reloadFor(ctx context.Context, by ledger.Caller) (present.Reload, error) {
	return s.Reload(context.WithoutCancel(ctx), ledger.CauseReload, &by)
}

// reloadNow reloads like Reload, without the comparison. It returns the replaced bundle as former;
// nil if it replaced none.
func (s *Service) reloadNow(ctx context.Context, cause ledger.Cause, by *ledger.Caller) (done present.Reload,
	former *policy.Bundle, err error) {
	s.reload.mu.Lock()
	defer s.reload.mu.Unlock()
	active := s.runner.Configured()
	done = present.Reload{
		SchemaVersion: present.SchemaVersion, Bundle: active.Bundle.Digest(), Previous: active.Bundle.Digest(),
	}
	refuse := func(why error) (present.Reload, *policy.Bundle, error) { return done, nil, &api.ReloadError{Why: why} }
	next, err := s.options.Reload()
	if err != nil {
		return refuse(err)
	}
	done.Restart, done.Warnings, done.Tests = next.Restart, next.Warnings, next.Tests
	if len(next.Changed) == 0 {
		return done, nil, nil
	}

	to := s.runner.configure(s.complete(next.Config))
	var at gateway.Replacement
	if s.gateway != nil {
		settings, err := s.gatewayConfig(to)
		if err == nil {
			at, err = s.gateway.Prepare(settings)
		}
		if err != nil {
			return refuse(err)
		}
	}

	if s.reload.ended.Load() {
		return refuse(errEnding)
	}

	if l := s.runner.options.Ledger; l != nil {
		why := ledger.Why{
			Cause:    cause,
			By:       by,
			Previous: active.Bundle.Digest(),
			Changed:  next.Changed,
		}
		if err := l.Activate(ctx, to.Bundle, why); err != nil {
			return done, nil, err
		}
	}

	s.activate(ctx, to, at, next)
	done.Bundle, done.Changed = to.Bundle.Digest(), next.Changed

	return done, active.Bundle, nil
}

// activate makes a configuration the active one.
func (s *Service) activate(ctx context.Context, to *ConfiguredRunner, at gateway.Replacement, next *Next) {
	next.Activated()
	var relayed <-chan struct{}
	if s.gateway != nil {
		relayed = s.gateway.Replace(at)
	}

	former, idle := s.runner.active.Replace(to)
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
			former.Upstreams.CloseReplaced(to.Upstreams)
		}
		next.Retired()
	})

	if s.worker != nil {
		s.worker.compareBundles(ctx)
	}
}

// wait waits for the requests of former configurations.
func (r *reloading) wait() {
	over := make(chan struct{})
	go func() {
		r.mu.Lock() // a reload under way may add a former configuration
		defer r.mu.Unlock()
		r.retiring.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(retireTime):
	}
}

// compareRecorded judges the newest calls of the ledger by the policies and risk rules of two
// bundles. It returns nil if both bundles have the same rules, or there is no ledger.
func (s *Service) compareRecorded(ctx context.Context, old, now *policy.Bundle) *present.ReloadCompared {
	l := s.runner.options.Ledger
	before, after := old.Content(), now.Content()
	if l == nil || before.Policy == nil || after.Policy == nil ||
		reflect.DeepEqual(before.Policy, after.Policy) && reflect.DeepEqual(before.Risk, after.Risk) {
		return nil
	}

	judge := func(c *policy.Content) *ruling.Judge {
		var claims []string
		if c.Identity != nil {
			claims = c.Identity.Claims
		}
		return ruling.NewJudge(c.Policy, c.Risk, claims...)
	}

	c := backtest.Comparer{Old: judge(before), New: judge(after), Replayer: s.runner.replayer}
	report, err := c.CompareLog(ctx, l, "", backtest.ForReload)
	if err != nil {
		s.runner.log.Warn("the recorded calls cannot be compared", "error", visible.Error(err))
		return nil
	}

	to := &present.ReloadCompared{
		Calls:   report.Judged,
		Since:   report.Since,
		Partial: report.Partial,
		Kinds:   make(map[string]int),
		Skipped: report.Unusable + len(report.Unknown),
	}

	for _, k := range report.Kinds {
		if k.Calls > 0 {
			to.Kinds[k.Kind] = k.Calls
		}
	}

	for _, call := range report.Changed {
		if call.Old == call.New {
			continue
		}
		if to.Otherwise++; len(to.Runs) < present.MaxReloadRuns {
			to.Runs = append(to.Runs, present.ReloadRun{
				Run:    call.RunID,
				Tool:   call.Tool,
				Before: call.Old,
				After:  call.New,
				By:     call.By,
			})
		}
	}

	return to
}

// logReload logs the result of a reload.
func (s *Service) logReload(cause ledger.Cause, by *ledger.Caller, done *present.Reload, err error) {
	actor, log := "", s.runner.log
	if by != nil {
		actor = by.Name
	}

	if err != nil {
		log.Error("reload failed: the former configuration stays active", "cause", string(cause), "actor", actor,
			"reason", visible.Error(err))
		return
	}

	for _, w := range done.Warnings {
		log.Warn("reload", "warning", visible.Text(w))
	}

	if len(done.Restart) > 0 {
		log.Warn("reload: these keys keep their former values until a restart", "keys", strings.Join(done.Restart, " "))
	}

	if len(done.Changed) == 0 {
		log.Info("reload: nothing has changed", "cause", string(cause), "actor", actor, "bundle", string(done.Bundle))
		return
	}

	values := []any{
		"cause", string(cause), "actor", actor, "bundle", string(done.Bundle), "previous", string(done.Previous),
		"changed", strings.Join(done.Changed, " "), "tests", done.Tests,
	}
	if c := done.Compared; c != nil {
		values = append(values, "compared", c.Calls, "decided_otherwise", c.Otherwise)
	}

	log.Info("reload", values...)
}
