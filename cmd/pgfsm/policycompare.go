package main

import (
	"context"
	"fmt"
	"io"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/policy"
	"pgfsm/policy/prove"
)

// Relations of new policies to old ones, for every call.
const (
	policiesEqual    = "equal"
	policiesNarrower = "narrower"
	policiesWider    = "wider"
	policiesDiffer   = "neither"
)

// comparePolicies proves how the decisions of two policy files compare.
func (a *app) comparePolicies(ctx context.Context, oldPath, newPath string) error {
	var bundles [2]*policy.Bundle
	for i, path := range []string{oldPath, newPath} {
		var err error
		if bundles[i], err = config.OpenPolicies(path, a.Bundle.Content(), safefile.ReadTrusted); err != nil {
			return err
		}
	}
	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return err
	}

	report, finish := reportProgress(a.w.stderr)
	defer finish()
	implies := func(newer, older *policy.Bundle, id string) (claimResult, error) {
		claims := []config.PolicyClaim{{Claim: prove.Claim{ID: id, Kind: prove.Implies, Old: older}}}
		results, err := prove.Prove(ctx, newer, []prove.Claim{claims[0].Claim}, prove.Options{
			Catalog: catalog,
			Report:  report,
		})
		if err != nil {
			return claimResult{}, err
		}
		return showResult(&claims[0], &results[0]), nil
	}
	narrower, err := implies(bundles[1], bundles[0], "no call is judged more mildly by the new policies")
	if err != nil {
		return err
	}
	wider, err := implies(bundles[0], bundles[1], "no call is judged more mildly by the old policies")
	if err != nil {
		return err
	}

	relation, code := relationOf(narrower.Status, wider.Status)
	shown := []claimResult{narrower, wider}
	return a.printDocument(cli.Document("relation", relation, "claims", shown), code, func(out io.Writer, _ ink) {
		orEqual := ""
		if relation == policiesNarrower && wider.Status == prove.Unknown {
			orEqual = ", or equal to them"
		}
		fmt.Fprintf(out, "the new policies are %s%s\n", describeRelation(relation), orEqual)
		printClaims(out, shown, false)
	})
}

// relationOf returns the relation, and the exit code: yes if no call is judged more mildly.
func relationOf(narrower, wider string) (relation string, code int) {
	switch {
	case narrower == prove.Unknown || wider == prove.Unknown && narrower == prove.Refuted:
		return prove.Unknown, cli.ExitFailed
	case narrower == prove.Proved && wider == prove.Proved:
		return policiesEqual, cli.ExitYes
	case narrower == prove.Proved: // also if it is unknown whether they are equal
		return policiesNarrower, cli.ExitYes
	case wider == prove.Proved:
		return policiesWider, cli.ExitNo
	}
	return policiesDiffer, cli.ExitNo
}

func describeRelation(relation string) string {
	return map[string]string{
		policiesEqual:    "equal to the old ones",
		policiesNarrower: "narrower than the old ones",
		policiesWider:    "wider than the old ones",
		policiesDiffer:   "neither narrower nor wider: each judges some calls more mildly",
		prove.Unknown:    "not proved to be narrower or wider",
	}[relation]
}
