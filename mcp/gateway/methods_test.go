package gateway

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway/session"
)

var update = flag.Bool("update", false, "write what is generated instead of comparing it")

// methodsPage has the table of methods between two marks.
const (
	methodsPage  = "../../docs/reference/gateway-protocol.md"
	methodsBegin = "<!-- methods: generated -->\n"
	methodsEnd   = "<!-- end -->\n"
)

// methodsTable is the table for people.
func methodsTable() string {
	var b strings.Builder
	b.WriteString("Generated from `mcp/gateway/methods.go` by `go test ./mcp/gateway -run TestDocs -update`.\n\n" +
		"| method | from the | needs | revisions | what the gateway does |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range methods {
		needs, when := "", "all"
		if m.needs != 0 {
			needs = "`" + m.needs.String() + "`"
		}
		switch m.revisions {
		case stateful:
			when = "to " + session.StatefulRevisions[0]
		case stateless:
			when = "from " + session.Stateless
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, map[sender]string{fromClient: "client", fromServer: "server"}[m.from], needs, when, m.why)
	}
	return b.String()
}

func TestDocsHaveTheTableOfMethods(t *testing.T) {
	page, err := os.ReadFile(methodsPage)
	check.NoError(t, err)
	before, rest, found := bytes.Cut(page, []byte(methodsBegin))
	got, after, ended := bytes.Cut(rest, []byte(methodsEnd))
	if !found || !ended {
		t.Fatalf("%s lacks the marks %q and %q", methodsPage, methodsBegin, methodsEnd)
	}
	want := "\n" + methodsTable() + "\n"
	if *update {
		check.NoError(t, os.WriteFile(methodsPage, slices.Concat(before, []byte(methodsBegin), []byte(want), []byte(methodsEnd), after), 0o644))
		return
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the table says; run go test ./mcp/gateway -run TestDocs -update (-want +got):\n%s", methodsPage, diff)
	}
}

// TestTheTableIsWhole: every row says all that it has to, and no two are about the same.
func TestTheTableIsWhole(t *testing.T) {
	if len(methodsByName) != len(methods) {
		t.Errorf("%d rows, %d methods", len(methods), len(methodsByName))
	}
	for _, m := range methods {
		if m.name == "" || m.from == 0 || m.revisions == 0 || m.handler == 0 || m.why == "" || strings.Contains(m.why, "|") {
			t.Errorf("the row of %q is not whole", m.name)
		}
		if m.notification != strings.HasPrefix(m.name, "notifications/") {
			t.Errorf("%s: a notification is named so", m.name)
		}
		if m.handler == byRelay && m.needs == 0 {
			t.Errorf("%s passes without being exposed", m.name)
		}
		if m.from == fromServer && !m.notification && m.revisions&stateless != 0 {
			t.Errorf("%s: stateless clients cannot be asked", m.name)
		}
	}
}

func TestExpose(t *testing.T) {
	for _, tc := range []struct {
		name, words string
		want        Expose
		fault       string
	}{
		{"nothing", "", 0, ""},
		{"default", "tools progress cancellation logging", DefaultExpose, ""},
		{"all", "all", everything, ""},
		{"all-and-more", "tools all", everything, ""},
		{"one", "input_required", ExposeInputRequired, ""},
		{"unknown", "tools Tools", 0, `"Tools" cannot be exposed`},
		{"twice", "tools roots tools", 0, `"tools" comes twice`},
		{"number", "1", 0, `"1" cannot be exposed`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseExpose(strings.Fields(tc.words))
			if got != tc.want || err == nil != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%v %v", got, err)
			}
			if again, err := ParseExpose(got.Words()); again != got || err != nil {
				t.Errorf("%v is read as %v: %v", got.Words(), again, err)
			}
		})
	}
}
