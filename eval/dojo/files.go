package dojo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pgfsm/eval"
)

// ImportFiles imports the data in a folder and writes three files for each suite into the folder out: SUITE.tools.json,
// SUITE.cases.jsonl and SUITE.retargeted.jsonl. A case names the suite's bundle and the user task's grant, if they exist:
// SUITE/pgfsm.yaml and SUITE/grants/TASK.yaml below bundles. found is the number of bundles and grants.
func ImportFiles(data, out, bundles string) (suites []Suite, found int, err error) {
	var failed error
	place := func(parts ...string) string {
		path, err := placeOf(out, filepath.Join(append([]string{bundles}, parts...)...))
		if path != "" {
			found++
		}
		failed = errors.Join(failed, err)
		return path
	}
	suites, err = Import(os.DirFS(data), Places{
		Bundle: func(suite string) string { return place(suite, "pgfsm.yaml") },
		Grant:  func(suite, task string) string { return place(suite, "grants", task+".yaml") },
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, 0, err
	}
	for i := range suites {
		s := &suites[i]
		err := errors.Join(
			eval.WriteFile(filepath.Join(out, s.Name+".tools.json"), s.Tools),
			eval.WriteFile(filepath.Join(out, s.Name+".cases.jsonl"), s.Cases),
			eval.WriteFile(filepath.Join(out, s.Name+".retargeted.jsonl"), s.Retargeted),
		)
		if err != nil {
			return nil, 0, err
		}
	}
	return suites, found, nil
}

// placeOf returns the path of a file as files in a folder name it; empty if there is no such file.
func placeOf(folder, path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s cannot be used", path), err)
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return filepath.ToSlash(relative), err
}

// Lines describe the changes to people.
func (n *Notes) Lines() (lines []string) {
	for _, line := range []struct {
		n    int
		what string
	}{
		{n.OlderVersions, "older versions of a task left out: the last one counts"},
		{n.Constants, "numbers that are written as expressions of numbers: computed"},
		{n.TextsKept, "texts that only the environment resolves: they stay as they are"},
		{n.NumbersReplaced, "numbers and truth values that only the environment resolves: 1, and true"},
		{n.ListsReplaced, "lists that only the environment resolves: a list of the one text"},
		{n.EnumMembers, "members of enumerations: their own name"},
		{n.NullsLeftOut, "optional arguments that are null: left out"},
	} {
		if line.n > 0 {
			lines = append(lines, fmt.Sprintf("%6d %s", line.n, line.what))
		}
	}
	return lines
}
