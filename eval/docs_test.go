package eval

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

// TestDocs holds docs/reference/evaluation-format.md to what is read: its examples are files of the format, and every member has its place.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/evaluation-format.md")
	check.NoError(t, err)
	example := func(kind string) string {
		found := regexp.MustCompile("(?s)```[a-z]+ " + kind + "\n(.*?)```").FindSubmatch(text)
		if found == nil {
			t.Fatalf("there is no example of %s", kind)
		}
		return string(found[1])
	}
	tools, err := ReadTools("tools", []byte(example("tools")))
	if err != nil || !tools.Lists("bank", "pay") {
		t.Errorf("tools: %v", err)
	}
	if cases, err := readAll(example("cases")); err != nil || len(cases) != 2 {
		t.Errorf("%d cases: %v", len(cases), err)
	}
	for _, of := range []any{Case{}, Call{}, Approval{}, Expect{}} {
		for field := range reflect.TypeOf(of).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("the member %s of %T is not described", name, of)
			}
		}
	}
}
