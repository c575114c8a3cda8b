package world

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/policy"
	"pgfsm/policy/condition"
)

func TestHistory(t *testing.T) {
	plan := &policy.Plan{Server: "s", Tool: "t"}
	before := []eval.Target{
		{Server: "s", Tool: "t", Args: []byte(`{"a":{"b":1.5}}`)}, {Server: "s", Tool: "u", Args: []byte(`{}`)}, {Server: "s", Tool: "t", Args: []byte(`{"a":{"b":0.25}}`)},
	}
	for _, c := range []struct {
		name, of, path string
		before         []eval.Target
		value, failed  string
	}{
		{"count", condition.QueryCount, "", before, "2", ""},
		{"count-of-all-tools", condition.QueryCountAll, "", before, "3", ""},
		{"sum", condition.QuerySum, "a.b", before, "1.75", ""},
		{"sum-of-nothing", condition.QuerySum, "a.b", nil, "0", ""},
		{"sum-of-what-is-missing", condition.QuerySum, "a.c", before, "", "no number there"},
		{"sum-of-an-exponent", condition.QuerySum, "a", []eval.Target{{Server: "s", Tool: "t", Args: []byte(`{"a":1e999999999}`)}}, "", "no number there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := answerQuery(policy.HistoryQuery{Of: c.of, Path: c.path, Scope: condition.ScopeTask, Window: 60}, plan, c.before)
			if got.Value != c.value || (got.Failed == "") != (c.failed == "") || !strings.Contains(got.Failed, c.failed) {
				t.Errorf("answerQuery() = %+v", got)
			}
		})
	}
	want := []policy.TaskCalls{{Calls: 2, Server: "s", Tool: "t"}, {Calls: 1, Server: "s", Tool: "u"}}
	if diff := cmp.Diff(want, taskCalls(before)); diff != "" {
		t.Errorf("taskCalls() (-want +got):\n%s", diff)
	}
}
