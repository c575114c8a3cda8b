package setup

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"pgfsm/internal/config"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
)

// An UnprovedClaim is a claim of the configuration that is refuted, or that is unknown.
type UnprovedClaim struct {
	ID      string
	Refuted bool
	Problem string // with the place of the claim
}

// ProveClaims proves the claims of the configuration, and returns the ids of those that are proved,
// and the others. Without the definition of a tool, it can have any schema and any annotations.
func (s *Setup) ProveClaims(ctx context.Context, catalog *policy.Catalog) (proved []string, unproved []UnprovedClaim, err error) {
	results, err := config.ProveClaims(ctx, s.Bundle, s.Loaded.Claims, prove.Options{Catalog: catalog})
	for i := range results {
		if r := &results[i]; r.Status == prove.Proved {
			proved = append(proved, r.ID)
		} else {
			unproved = append(unproved, UnprovedClaim{
				ID:      r.ID,
				Refuted: r.Status == prove.Refuted,
				Problem: fmt.Sprintf("%s:%d: the claim %q is %s: %s", s.Loaded.ClaimsPath, s.Loaded.Claims[i].Line, r.ID, r.Status,
					present.NewClaim(&s.Loaded.Claims[i], r).Why),
			})
		}
	}
	return proved, unproved, err
}

// proveJudged returns the claims that refuse a configuration: those that are refuted, and those that
// are unknown although the active configuration proved them.
func (r *Reloader) proveJudged(candidate *judged, catalog, activeCatalog *policy.Catalog) error {
	proved, unproved, err := candidate.ProveClaims(context.Background(), catalog)
	if err != nil || len(unproved) == 0 {
		candidate.proved = proved
		return err
	}

	_, former, err := r.active.ProveClaims(context.Background(), activeCatalog)
	if err != nil {
		return err
	}
	wasProved := func(id string) bool {
		isSame := func(c config.PolicyClaim) bool { return c.ID == id }
		isUnproved := func(c UnprovedClaim) bool { return c.ID == id }
		return slices.ContainsFunc(r.active.Loaded.Claims, isSame) && !slices.ContainsFunc(former, isUnproved)
	}

	var failed []error
	for _, c := range unproved {
		if c.Refuted || wasProved(c.ID) {
			failed = append(failed, errors.New(c.Problem))
		} else {
			candidate.warnings = append(candidate.warnings, c.Problem)
		}
	}
	candidate.proved = proved
	return errors.Join(failed...)
}

// comparableClaims returns what is written about claims, without their lines, so that equal claims
// are deeply equal. Older policies without risk rules of their own have those of the configuration.
func comparableClaims(claims []config.PolicyClaim, configured *risk.Content) (written []any) {
	for _, c := range claims {
		var older policy.Content
		if c.Old != nil {
			content := c.Old.Content()
			older.Policy = content.Policy
			if !reflect.DeepEqual(content.Risk, configured) {
				older.Risk = content.Risk
			}
		}
		c.Old, c.Line = nil, 0
		written = append(written, []any{c, older})
	}
	return written
}
