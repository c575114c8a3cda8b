package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newLedgerWhatIf(w world, f *ledgerFlags) *cobra.Command {
	var bundle string
	cmd := &cobra.Command{
		Use:  "what-if RUN",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notEmpty(cmd, "bundle"); err != nil {
				return err
			}
			if bundle != "" {
				if _, err := canonical.ParseDigest(bundle); err != nil {
					return fmt.Errorf("--bundle: %w", err)
				}
			}
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.view(cmd.Context(), w, func(r ledger.Reader) error {
				return whatIf(w, r, p, args[0], canonical.Digest(bundle), f.json)
			})
		},
	}
	cmd.Flags().StringVar(&bundle, "bundle", "", "the digest of the configuration that judges (default: the active one)")
	return cmd
}

func whatIf(w world, r ledger.Reader, p *traces.Replayer, run string, bundle canonical.Digest, asJSON bool) error {
	run, err := ledger.FindRun(r, run)
	if err != nil {
		return err
	}
	tried, err := ledger.TryBundle(r, p, run, bundle)
	switch {
	case errors.Is(err, ledger.ErrBundle) && bundle == "":
		return errors.New("no configuration is active: pgfsm serve records its configuration when it starts; name one with --bundle")
	case err != nil:
		return noRun(run, err)
	}
	d := present.NewWhatIf(run, &tried)
	if asJSON {
		return printJSON(w.stdout, d)
	}
	k := newInk(w)
	for _, by := range []struct {
		name   string
		judged *present.Judged
	}{{"By the run's own configuration", &d.Own}, {"By " + string(d.Bundle), &d.Judged}} {
		fmt.Fprintln(w.stdout, k.bold(by.name))
		for _, row := range by.judged.Rows() {
			if row.Value != "" {
				fmt.Fprintf(w.stdout, "  %-10s %s\n", row.Name+":", visible.Text(row.Value))
			}
		}
	}
	switch {
	case len(d.Changes) > 0:
		fmt.Fprintln(w.stdout, k.bold("Changes:"), strings.Join(d.Changes, ", "))
	case d.Judged.Decision == present.Unknown:
		fmt.Fprintln(w.stdout, k.bold("The decision is not known."))
	default:
		fmt.Fprintln(w.stdout, k.bold("The decision is the same."))
	}
	return nil
}
