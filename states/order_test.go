package states_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// played runs every scenario and shows each of its steps.
func played(t *testing.T, show func(states.Step)) {
	t.Helper()
	m := statestest.MustMachine(t)
	for _, s := range statestest.Scenarios() {
		var rec statestest.Memory
		if _, err := m.Advance(context.Background(), s.Run(), s.Entry(), &rec); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		for _, step := range rec.Steps {
			show(step)
		}
	}
}

// TestDocsOrderNamesEveryCommand compares the table in docs/reference/trace-format.md of which command stands in which state with the
// commands of all scenarios.
func TestDocsOrderNamesEveryCommand(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(reference, "trace-format.md"))
	check.NoError(t, err)
	_, order, _ := strings.Cut(string(page), "\n## Order\n")
	order, _, _ = strings.Cut(order, "\n### ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `(\\w+)`(?: \\(`(\\w+)`\\))? \\| .+ \\|$").FindAllStringSubmatch(order, -1) {
		documented = append(documented, strings.TrimSpace(row[1]+" "+row[2]+" "+row[3]))
	}
	var wanted []string
	played(t, func(s states.Step) {
		var command struct {
			Do      string `json:"do"`
			Purpose string `json:"purpose"`
		}
		check.NoError(t, json.Unmarshal(s.Command, &command))
		if command.Do != "" {
			wanted = append(wanted, strings.TrimSpace(string(s.From)+" "+command.Do+" "+command.Purpose))
		}
	})
	slices.Sort(wanted)
	slices.Sort(documented)
	if diff := cmp.Diff(slices.Compact(wanted), documented); diff != "" {
		t.Errorf("the order table is not what the scenarios do (-scenarios +page):\n%s", diff)
	}
}

// TestDocsBundleShape holds the shape of bundle.content in docs/reference/trace-format.md to its type.
func TestDocsBundleShape(t *testing.T) {
	golden.Section(t, filepath.Join(reference, "trace-format.md"), "<!-- bundle shape -->\n", "<!-- end -->\n",
		"\n```\n"+shape(reflect.TypeFor[policy.Content](), "\n  ")+"\n```\n\n")
}

// shape writes a type as its JSON looks, each member of the outermost object on a line of its own.
func shape(typ reflect.Type, line string) string {
	switch {
	case typ == reflect.TypeFor[jsontext.Value]():
		return "any"
	case typ.Kind() == reflect.Pointer:
		return shape(typ.Elem(), line)
	case typ.Kind() == reflect.Slice:
		return "[" + shape(typ.Elem(), "") + ", …]"
	case typ.Kind() == reflect.Struct:
		var members []string
		for _, f := range reflect.VisibleFields(typ) {
			name, option, left := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
				continue // JSON has the members of an embedded struct, not the struct
			}
			mark := ""
			if left && strings.HasPrefix(option, "omit") {
				mark = "?"
			}
			members = append(members, line+`"`+name+`"`+mark+": "+shape(f.Type, ""))
		}
		slices.Sort(members)
		if line != "" {
			return "{" + strings.Join(members, ",") + "\n}"
		}
		return "{" + strings.Join(members, ", ") + "}"
	case typ.Kind() == reflect.Bool:
		return "true or false"
	case typ.Kind() == reflect.String:
		return "string"
	}
	return "number"
}
