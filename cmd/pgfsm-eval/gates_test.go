package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval/gates"
	"pgfsm/internal/cli"
)

// slipping is an evaluation in which one suite has more slips than it keeps.
func slipping(context.Context) (*gates.Report, error) {
	slip := gates.Slip{
		ID: "trailing_text-7", Input: `{}\u001b[2K\xff`, Want: "refused", Got: "permitted",
	}
	return &gates.Report{Suites: []gates.Suite{
		{Name: "plan_parse", Cases: 2, Counted: "outputs"},
		{Name: "plan_gate", Cases: 9, Slips: 3, Counted: "plans", Slipped: []gates.Slip{slip, slip}},
	}}, nil
}

// TestGatesSaysWhatSlips: exit code 1, the file is written all the same, and the slip is printed with all that is needed to
// look into it, safe to show.
func TestGatesSaysWhatSlips(t *testing.T) {
	var out, errs bytes.Buffer
	path := filepath.Join(t.TempDir(), "new", "gates.json")
	o := gatesOptions{output: path, run: slipping}
	err := o.evaluateGates(t.Context(), streams{Out: &out, Err: &errs})
	var verdict cli.VerdictError
	if !errors.As(err, &verdict) || verdict.Code != cli.ExitNo {
		t.Errorf("evaluate() = %v, want the exit code %d", err, cli.ExitNo)
	}
	for _, want := range []string{
		"✗ plan_gate trailing_text-7", `input:    {}\u001b[2K\xff`, "expected: refused", "got:      permitted", "and 1 more of plan_gate", "3 slips in 2 suites",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("standard output lacks %q:\n%s", want, out.String())
		}
	}
	if errs.Len() > 0 {
		t.Errorf("standard error %q, want nothing", errs.String())
	}
	doc, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(doc, []byte(`"slipped"`)) {
		t.Errorf("the file: %s, %v, want the slips in it", doc, err)
	}
}
