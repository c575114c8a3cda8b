package ledger

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEventsOfTheManual holds the table of events in the manual to the payloads.
func TestEventsOfTheManual(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/record-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- events -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	told := make(map[Type][]string)
	name := regexp.MustCompile("`([^`]+)`|(\\*steps\\*)")
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*?) \| .* \|$`).FindAllStringSubmatch(table, -1) {
		var members []string
		for _, m := range name.FindAllStringSubmatch(row[2], -1) {
			if m[2] != "" {
				members = append(members, "inputs", "steps")
			} else {
				members = append(members, m[1])
			}
		}
		slices.Sort(members)
		for _, kind := range name.FindAllStringSubmatch(row[1], -1) {
			told[Type(kind[1])] = members
		}
	}
	for _, kind := range Types() {
		p, err := newPayload(kind)
		if err != nil {
			t.Fatal(err)
		}
		if want := membersOf(reflect.TypeOf(p).Elem()); !slices.Equal(told[kind], want) {
			t.Errorf("the manual says that %s has %q, it has %q", kind, told[kind], want)
		}
		delete(told, kind)
	}
	delete(told, "")
	for kind := range told { // in any order
		t.Errorf("the manual has %q, which is no event", kind)
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
