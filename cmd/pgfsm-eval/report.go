package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"pgfsm/eval"
	"pgfsm/eval/report"
	"pgfsm/internal/visible"
)

func newReport(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Write one page with all results",
		Long: `report reads the results of the other commands in a folder: every .json file of attack, and of gates and of e2e the one
whose name sorts last. It ignores other .json files, and names them on stderr and on the page.

It writes one HTML page without scripts or external resources. The page names missing results. The same files give the
same bytes. Exit code 0 with any figures, 2 if report cannot write the page.`,
		Example: `  pgfsm-eval report eval/results -o report.html`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return writeReport(s, args[0], output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "report.html", "the file for the page")
	return cmd
}

func writeReport(s streams, dir, output string) error {
	switch {
	case output == "":
		return errors.New("--output names no file")
	case filepath.Ext(output) == ".json":
		return errors.New("a report is no .json file: those are results, from which it is made")
	}

	found, err := report.Read(dir)
	if err != nil {
		return err
	}
	page, err := found.HTML()
	if err != nil {
		return err
	}
	if err := eval.WriteFile(output, page); err != nil {
		return fmt.Errorf("the report could not be written to %s: %w", output, err)
	}

	fmt.Fprintf(s.Out, "written to %s\n", visible.Text(filepath.ToSlash(output)))
	for _, m := range found.Missing() {
		fmt.Fprintf(s.Err, "pgfsm-eval: %s\n", m)
	}

	return nil
}
