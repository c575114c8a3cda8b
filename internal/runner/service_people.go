package runner

import (
	"context"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/present"
	"pgfsm/internal/runner/explain"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/traces/ledger"
)

// knownServers returns the servers with the data of their last listings. note names the pinned
// definitions that it cannot read.
func (s *Service) knownServers() (files []present.Server, note string) {
	p := present.Pins{Config: s.options.Config, Definition: func(canonical.Digest) []byte { return nil }}
	if files := s.runner.Configured().Allowlists; len(files) > 0 {
		p.Allowlist = files[0]
		d, err := pins.ReadAll(files)
		if err != nil {
			note = "The approved definitions cannot be read: " + err.Error()
		} else {
			note, p.Definition = d.Warning, func(digest canonical.Digest) []byte { return d.Definition(digest) }
		}
	}
	return s.runner.Configured().Servers(&p), note
}

// askServers asks every server for its tools.
func (s *Service) askServers(ctx context.Context) error {
	_, err := s.runner.List(ctx)
	return err
}

// explainCall answers a question about a call that nobody makes.
func (s *Service) explainCall(ctx context.Context, q present.Question) (present.Explanation, error) {
	x, err := explain.Answer(ctx, explain.Sources{
		Bundle:  s.runner.Configured().Bundle,
		Catalog: s.explainCatalog,
		History: s.addHistory,
		Now:     s.runner.timestamp(),
	}, q)
	return present.Explanation{SchemaVersion: present.SchemaVersion, Explanation: x}, err
}

// explainCatalog returns the servers' current listings if live is true; otherwise the stored
// definitions of pins, or nil without any.
func (s *Service) explainCatalog(ctx context.Context, b *policy.Bundle, live bool) (*policy.Catalog, error) {
	if live {
		listed, err := s.runner.List(ctx)
		if err != nil {
			return nil, err
		}
		return b.Catalog(listed.Catalog(), listed.Servers), nil
	}
	allowlists := s.runner.Configured().Allowlists
	if len(allowlists) == 0 {
		return nil, nil
	}
	c, _, err := pins.Stored(b, allowlists)
	return c, err
}

// keptClaims are the results of proving the claims of a configuration.
type keptClaims struct {
	mu      sync.Mutex // held while they are proved: others wait for the same results
	of      *ConfiguredRunner
	results []present.Claim
}

// proveClaims proves the claims of the configuration, for a draft of its policies or, without one, for
// the active ones, whose results are kept until the configuration changes.
func (s *Service) proveClaims(ctx context.Context, draft *rules.Content) ([]present.Claim, error) {
	active := s.runner.Configured()
	if draft != nil {
		content := *active.Bundle.Content()
		content.Policy = draft
		bundle, err := policy.Compile(content)
		if err != nil {
			return nil, err
		}
		return s.proveClaimsFor(ctx, active, bundle)
	}

	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	if s.claims.of == active {
		return s.claims.results, nil
	}
	results, err := s.proveClaimsFor(ctx, active, active.Bundle)
	if err == nil {
		s.claims.of, s.claims.results = active, results
	}
	return results, err
}

// proveClaimsFor proves the claims of a configuration for a bundle.
func (s *Service) proveClaimsFor(ctx context.Context, active *ConfiguredRunner, bundle *policy.Bundle) ([]present.Claim, error) {
	catalog, err := s.explainCatalog(ctx, bundle, false)
	if err != nil {
		return nil, err
	}
	found, err := config.ProveClaims(ctx, bundle, active.Claims, prove.Options{Catalog: catalog})
	results := make([]present.Claim, len(found))
	for i := range found {
		results[i] = present.NewClaim(&active.Claims[i], &found[i])
	}
	return results, err
}

// addHistory adds the facts about earlier calls that a run would read.
func (s *Service) addHistory(ctx context.Context, e *explain.Explainer, c *explain.Call) error {
	if !e.NeedsHistory(c) {
		return nil
	}
	return e.ReadHistory(ctx, s.runner.options.Ledger, c)
}

// handleVote handles each vote at the admin address that counted.
func (s *Service) handleVote(b ledger.Ballot) {
	s.worker.Wake()
	s.runner.log.Info("vote", "run", b.Run, "actor", b.By.Name, "approve", b.Approve)
}
