package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	evalreport "pgfsm/eval/report"
	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
)

// defaultReportFile is the file for the page without --output.
const defaultReportFile = "report.html"

// reportOptions are the flags of eval report.
type reportOptions struct {
	output string
	md     string
	json   bool
}

func newReport(s streams) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write one page with all results",
		Long: `report reads the results of the other commands of eval in a folder: every .json file of eval attack,
offline_gate_eval.json (eval gates), and the newest TIME_metrics.json (eval e2e). It adds up files of attacks whose
names have the same beginning before the word attack, such as own-attack-SUITE.json. It ignores other .json files, and
names them on stderr and on the page.

It writes one HTML page without scripts or external resources, and with --md the same figures as tables in Markdown. The page
names missing results. The same files give the same bytes. Exit code 0 with any figures, 2 if report cannot write the
page.`,
		Example: `  pgfsm-eval report eval/results -o report.html --md report.md`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return o.report(s, args[0]) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", defaultReportFile, "the file for the page")
	cmd.Flags().StringVar(&o.md, "md", "", "the file for the Markdown version (default: none)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	return cmd
}

func (o *reportOptions) report(s streams, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	found, err := evalreport.Read(dir)
	if err != nil {
		return err
	}
	if err := found.Write(o.output, o.md); err != nil {
		return err
	}
	if o.json {
		return cli.PrintJSON(s.Out, struct {
			SchemaVersion int      `json:"schema_version"`
			HTML          string   `json:"html"`
			Markdown      string   `json:"markdown,omitzero"`
			Missing       []string `json:"missing"`
		}{cli.SchemaVersion, filepath.ToSlash(o.output), filepath.ToSlash(o.md), append([]string{}, found.Missing()...)})
	}
	for _, path := range []string{o.output, o.md} {
		if path != "" {
			fmt.Fprintf(s.Out, "written to %s\n", visible.Text(filepath.ToSlash(path)))
		}
	}
	for _, m := range found.Missing() {
		fmt.Fprintf(s.Err, "pgfsm-eval: %s\n", m)
	}
	return nil
}

// check refuses to write over results, and two forms into one file.
func (o *reportOptions) check() error {
	switch {
	case o.output == "":
		return errors.New("--output names no file")
	case filepath.Ext(o.output) == ".json" || filepath.Ext(o.md) == ".json":
		return errors.New("a report is no .json file: those are results, from which it is made")
	case filepath.Clean(o.output) == filepath.Clean(o.md):
		return fmt.Errorf("--output and --md both name %s: name two files", o.output)
	}
	return nil
}
