package e2e

import (
	"regexp"
	"slices"
	"testing"
)

// TestServeMetricsNameTools: metrics name the tools of the allowlist, also those of a group only, as it was when the request began.
func TestServeMetricsNameTools(t *testing.T) {
	t.Parallel()
	o := provideForAgents(t)
	admin := makeToken(t, o.config, "admin", "root")
	measured := func() (names []string) {
		t.Helper()
		_, _, text := o.scraped(t, nil)
		counts := regexp.MustCompile(`(?m)^mcp_(server|client)_operation_duration_seconds_count{(?:error_type="(\w+)",)?.*gen_ai_tool_name="(\w+)".* (\d+)$`)
		for _, m := range counts.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1]+" "+m[3]+" "+m[2]+" "+m[4])
		}
		slices.Sort(names)
		return names
	}
	member, other := o.agent("/mcp", o.member([]string{"oncall"})), o.agent("/mcp", o.member([]string{"dev"}))
	other.gets(t, "echo__burn", `{}`, "tool_not_allowed")
	same(t, "before the reload", []string{"server burn tool_error 1"}, measured())

	leave := make(chan struct{})
	o.u.Does(o.u.Waits(leave))
	answer := make(chan answered)
	go func() { answer <- member.call("echo__burn", `{}`) }()
	soon(t, "the call is under way", func() bool { return o.u.Calls.Load() == 1 })
	o.replaces(t, "oncall.json", `{"echo": ["look"]}`)
	o.reloads(t, admin, exitYes)
	close(leave)
	if got := <-answer; got.code() != "hi" {
		t.Errorf("the call under way is answered with %s", got.Raw)
	}
	member.gets(t, "echo__burn", `{}`, "tool_not_allowed")
	same(t, "after the reload", []string{"client burn  1", "server _other tool_error 1", "server burn  1", "server burn tool_error 1"}, measured())
}
