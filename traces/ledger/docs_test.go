package ledger

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgfsm/internal/test/check"
)

// recordFormat returns the page about the record.
func recordFormat(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/record-format.md")
	check.NoError(t, err)
	return string(page)
}

// verifierLog returns the part of the verifier in JavaScript that reads the log.
func verifierLog(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("checkpoint/testdata/log.mjs")
	check.NoError(t, err)
	return string(script)
}

// membersAfter returns the names in the first column of the table that follows a text.
func membersAfter(page, text string) (names []string) {
	_, table, _ := strings.Cut(page, text)
	_, table, _ = strings.Cut(table, "| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range strings.Split(first, ",") {
			names = append(names, strings.Trim(name, " `"))
		}
	}
	return names
}

// eventsOfTheManual returns the members of each type of event in the manual's table.
func eventsOfTheManual(t *testing.T) map[Type][]string {
	t.Helper()
	page := recordFormat(t)
	shared := map[string][]string{
		"*steps*":      membersAfter(page, "The **steps** of a run"),
		"*generation*": membersAfter(page, "The **generation** is"),
	}
	_, table, _ := strings.Cut(page, "<!-- events -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	told := make(map[Type][]string)
	name := regexp.MustCompile("`([^`]+)`|(\\*[a-z]+\\*)")
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|(.*?)\| .* \|$`).FindAllStringSubmatch(table, -1) {
		var members []string
		for _, m := range name.FindAllStringSubmatch(row[2], -1) {
			if m[2] != "" {
				members = append(members, shared[m[2]]...)
			} else {
				members = append(members, m[1])
			}
		}
		slices.Sort(members)
		for _, kind := range name.FindAllStringSubmatch(row[1], -1) {
			told[Type(kind[1])] = members
		}
	}
	delete(told, "type") // the head of the table
	return told
}

// TestEventsOfTheManual holds the table of events in the manual to the payloads.
func TestEventsOfTheManual(t *testing.T) {
	told := eventsOfTheManual(t)
	for _, kind := range Types() {
		p, err := newPayload(kind)
		check.NoError(t, err)
		if want := membersOf(reflect.TypeOf(p).Elem()); !slices.Equal(told[kind], want) {
			t.Errorf("the manual says that %s has %q, it has %q", kind, told[kind], want)
		}
		delete(told, kind)
	}
	for kind := range told { // in any order
		t.Errorf("the manual has %q, which is no event", kind)
	}
}

// TestSecondVerifierKnowsTheEvents compares the events that the verifier in JavaScript knows with the manual's table.
func TestSecondVerifierKnowsTheEvents(t *testing.T) {
	known := make(map[Type][]string)
	for _, row := range regexp.MustCompile(`(?m)^  "([a-z]+\.[a-z]+)": "(.*)",$`).FindAllStringSubmatch(verifierLog(t), -1) {
		known[Type(row[1])] = slices.Sorted(slices.Values(strings.Fields(row[2])))
	}
	if diff := cmp.Diff(eventsOfTheManual(t), known, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the manual (-) and the verifier (+) differ:\n%s", diff)
	}
}

// TestClassesOfTheManual compares the class of each type of event in the manual, in the verifier in JavaScript and in this package.
func TestClassesOfTheManual(t *testing.T) {
	script := verifierLog(t)
	rows := regexp.MustCompile("(?m)^\\| `(log|run|session)` \\|.*$").FindAllStringSubmatch(recordFormat(t), -1)
	for _, kind := range Types() {
		told := "log"
		for _, row := range rows {
			if strings.Contains(row[0], "`"+string(kind)+"`") {
				told = row[1]
			}
		}
		before, _, _ := strings.Cut(script, `  "`+string(kind)+`": `)
		known := strings.ToLower(regexp.MustCompile(`const ([A-Z]+)_EVENTS = {`).FindAllStringSubmatch(before, -1)[strings.Count(before, "_EVENTS = {")-1][1])
		if is := string(classOf([]Type{kind})); told != is || known != is {
			t.Errorf("%s has the class %s in the manual, %s in the verifier, and is of the class %s", kind, told, known, is)
		}
	}
}

// TestSecondVerifierKnowsTheSteps compares the commands, events and facts that the verifier in JavaScript knows with the manual's tables.
func TestSecondVerifierKnowsTheSteps(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/trace-format.md")
	check.NoError(t, err)
	_, tables, _ := strings.Cut(string(page), "## Commands, events and facts")
	tables, _, _ = strings.Cut(tables, "What the digests in facts")
	script, err := os.ReadFile("checkpoint/testdata/trace.mjs")
	check.NoError(t, err)
	told, known := make(map[string]string), make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|(?: `[a-z_]+` \\|)? (.*) \\|$").FindAllStringSubmatch(tables, -1) {
		told[row[1]] = strings.NewReplacer("`", "", ",", "").Replace(row[2])
	}
	for _, row := range regexp.MustCompile(`(?m)^  ([a-z_]+): "([^"]*)",$`).FindAllStringSubmatch(string(script), -1) {
		known[row[1]] = strings.ReplaceAll(row[2], "?", "")
	}
	if diff := cmp.Diff(told, known); diff != "" || len(told) == 0 {
		t.Errorf("the manual (-) and the verifier (+) differ:\n%s", diff)
	}
}

// membersOf are the JSON members of a struct, but for its type; a question mark follows those that may be left out.
func membersOf(s reflect.Type) (all []string) {
	for i := range s.NumField() {
		f := s.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			all = append(all, membersOf(f.Type)...)
		case tag != "" && tag != "type" && options != "":
			all = append(all, tag+"?")
		case tag != "" && tag != "type":
			all = append(all, tag)
		}
	}
	slices.Sort(all)
	return all
}

// TestRulesOfTheManual: the page, this package and the verifier in JavaScript have the same rules.
func TestRulesOfTheManual(t *testing.T) {
	rules := func(pattern string, paths ...string) (found []string) {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			check.NoError(t, err)
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
				found = append(found, m[1])
			}
		}
		return found
	}
	stated := rules(`(?m)^\| (R[0-9]+) \|`, "../../docs/reference/record-format.md")
	for source, cited := range map[string][]string{
		"Go":         rules(`Rule += "(R[0-9]+)"`, "rules.go", "checkpoint/rule.go"),
		"JavaScript": rules(`"(R[0-9]+)"`, "checkpoint/testdata/log.mjs", "checkpoint/testdata/runs.mjs"),
	} { // in any order
		less := func(a, b string) bool { return a < b }
		unique := func(list []string) []string { slices.Sort(list); return slices.Compact(list) }
		if diff := cmp.Diff(slices.Clone(stated), unique(cited), cmpopts.SortSlices(less)); diff != "" {
			t.Errorf("the rules of the page and those of %s: %s", source, diff)
		}
	}
}
