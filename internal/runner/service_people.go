package runner

import (
	"context"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/present"
	"pgfsm/internal/runner/explain"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// knownServers returns the servers with the data of their last listings. note names the pinned
// definitions that it cannot read.
func (s *Service) knownServers() (all []present.Server, note string) {
	p := present.Pins{Config: s.options.Config, Definition: func(canonical.Digest) []byte { return nil }}
	if all := s.runner.Configured().Allowlists; len(all) > 0 {
		p.Allowlist = all[0]
		d, err := pins.ReadAll(all)
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

// explain answers a question about a call that nobody makes.
func (s *Service) explain(ctx context.Context, q present.Question) (present.Explanation, error) {
	x, err := explain.Answer(ctx, explain.Sources{
		Bundle:  s.runner.Configured().Bundle,
		Catalog: s.catalog,
		History: s.history,
		Now:     s.runner.timestamp(),
	}, q)
	return present.Explanation{SchemaVersion: present.SchemaVersion, Explanation: x}, err
}

// catalog returns the servers' current listings if live is true; otherwise the stored definitions
// of pins, or nil without any.
func (s *Service) catalog(ctx context.Context, b *policy.Bundle, live bool) (*policy.Catalog, error) {
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

// history adds the facts about earlier calls that a run would read.
func (s *Service) history(ctx context.Context, e *explain.Explainer, c *explain.Call) error {
	if !e.NeedsHistory(c) {
		return nil
	}
	return e.ReadHistory(ctx, s.runner.options.Ledger, c)
}

// voted handles each vote at the admin address that counted.
func (s *Service) voted(b ledger.Ballot) {
	s.worker.Wake()
	s.runner.log.Info("vote", "run", b.Run, "actor", b.By.Name, "approve", b.Approve)
}
