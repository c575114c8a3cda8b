package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
)

// headed is a tool whose schema has these properties.
func headed(properties string) string {
	return `{"name":"echo","inputSchema":{"type":"object","properties":` + properties + `}}`
}

func TestHeadersOfArguments(t *testing.T) {
	const region = `{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"on":{"type":"boolean","x-mcp-header":"On"},` +
		`"in":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"In-X"}}}}`
	deep := `{"type":"string","x-mcp-header":"Deep"}`
	for range maxParamDepth - 1 {
		deep = `{"properties":{"p":` + deep + `}}`
	}
	path := func(n int, value string) string {
		return strings.Repeat(`{"p":`, n) + value + strings.Repeat(`}`, n)
	}
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"P%d"}`, i, i))
		}
		return `{` + strings.Join(all, ",") + `}`
	}
	for _, tc := range []struct {
		name, properties, arguments string
		want                        map[string]string
	}{
		{"all-kinds", region, `{"region":"eu","n":-7,"on":false,"in":{"x":"y z"}}`, map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-N": "-7", "Mcp-Param-On": "false", "Mcp-Param-In-X": "y z"}},
		{"absent-and-null", region, `{"region":null}`, nil},
		{"empty", region, `{"region":""}`, map[string]string{"Mcp-Param-Region": ""}},
		{"not-ascii", region, `{"region":"\u00e9"}`, map[string]string{"Mcp-Param-Region": "=?base64?w6k=?="}},
		{"a-line-break", region, `{"region":"a\nb"}`, map[string]string{"Mcp-Param-Region": "=?base64?YQpi?="}},
		{"looks-encoded", region, `{"region":"=?base64?eA==?="}`, map[string]string{"Mcp-Param-Region": "=?base64?PT9iYXNlNjQ/ZUE9PT89?="}},
		{"largest", region, `{"n":9007199254740991}`, map[string]string{"Mcp-Param-N": "9007199254740991"}},
		{"too-large", region, `{"n":9007199254740992}`, nil},
		{"not-whole", region, `{"n":1.5}`, nil},
		{"mark-in-escapes", `{"r":{"type":"string","x\u002dmcp-he\u0061der":"R"}}`, `{"r":"v"}`, map[string]string{"Mcp-Param-R": "v"}},
		{"mark-on-a-number", `{"r":{"type":"string","x-mcp-header":"R"},"n":{"type":"number","x-mcp-header":"N"}}`, `{"r":"v"}`, nil},
		{"one-name-twice", `{"r":{"type":"string","x-mcp-header":"R"},"s":{"type":"string","x-mcp-header":"r"}}`, `{"r":"v"}`, nil},
		{"name-breaks-the-line", `{"r":{"type":"string","x-mcp-header":"A\r\nB"}}`, `{"r":"v"}`, nil},
		{"deep-at-the-limit", `{"p":` + deep + `}`, path(maxParamDepth, `"v"`), map[string]string{"Mcp-Param-Deep": "v"}},
		{"deep-one-past", `{"p":{"properties":{"p":` + deep + `}}}`, path(maxParamDepth+1, `"v"`), nil},
		{"many-at-the-limit", many(maxParams), `{"p0":"v"}`, map[string]string{"Mcp-Param-P0": "v"}},
		{"many-one-past", many(maxParams + 1), `{"p0":"v"}`, nil},
		{"no-marks", `{"r":{"type":"string"}}`, `{"r":"v"}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParamHeader([]byte(headed(tc.properties)), []byte(tc.arguments))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHeadersOfArgumentsAreChecked(t *testing.T) {
	const properties = `{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}`
	for _, tc := range []struct {
		name, arguments string
		header          http.Header
		passes          bool
	}{
		{"same", `{"region":"eu","n":7}`, http.Header{"Mcp-Param-Region": {"eu"}, "Mcp-Param-N": {"7"}}, true},
		{"encoded", `{"region":"Hello"}`, http.Header{"Mcp-Param-Region": {"=?base64?SGVsbG8=?="}}, true},
		{"encoded-without-padding", `{"region":"Hello"}`, http.Header{"Mcp-Param-Region": {"=?base64?SGVsbG8?="}}, false},
		{"not-encoded", `{"region":"=?base64?SGVsbG8="}`, http.Header{"Mcp-Param-Region": {"=?base64?SGVsbG8="}}, true},
		{"another-number", `{"n":7}`, http.Header{"Mcp-Param-N": {"8"}}, false},
		{"a-number-in-another-spelling", `{"n":7}`, http.Header{"Mcp-Param-N": {"7.0"}}, true},
		{"a-string-in-another-spelling", `{"region":"7"}`, http.Header{"Mcp-Param-Region": {"7.0"}}, false},
		{"missing", `{"region":"eu"}`, http.Header{}, false},
		{"missing-for-null", `{"region":null}`, http.Header{}, true},
		{"empty-for-empty", `{"region":""}`, http.Header{"Mcp-Param-Region": {""}}, true},
		{"without-an-argument", `{}`, http.Header{"Mcp-Param-Region": {"eu"}}, false},
		{"twice", `{"region":"eu"}`, http.Header{"Mcp-Param-Region": {"eu", "eu"}}, false},
		{"of-no-kind-that-can-be", `{"region":{}}`, http.Header{"Mcp-Param-Region": {"{}"}}, false},
		{"not-over-http", `{"region":"eu"}`, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t, "docs", nil)
			r.servers["docs"].tools = []string{headed(properties)}
			c := r.modern("", `{}`)
			q := c.request(`7`, "tools/call", `{"name":"docs__echo","arguments":`+tc.arguments+`,"_meta":`+c.meta("")+`}`)
			q.Header = tc.header
			got := string(r.dispatch(t.Context(), q))
			if passes := !strings.Contains(got, `"error"`); passes != tc.passes || !passes && !strings.Contains(got, `"code":-32020`) ||
				!passes && !strings.Contains(got, `"data":{"code":"header_mismatch"}`) || len(r.judge.asked) > 0 != tc.passes {
				t.Errorf("it was answered with %s", got)
			}
		})
	}
}

// TestHeadersOfToolsThatAgentsMayNotSee: that a hidden tool wants a header is not told.
func TestHeadersOfToolsThatAgentsMayNotSee(t *testing.T) {
	r := newFixture(t, "docs", nil)
	r.servers["docs"].tools = []string{headed(`{"region":{"type":"string","x-mcp-header":"Region"}}`)}
	r.judge.groups = map[string]string{"echo": "oncall"}
	c := r.modern("docs", `{}`)
	for _, groups := range [][]string{{}, {"oncall"}} {
		c.identity = &policy.Identity{Groups: &groups}
		q := c.request(`7`, "tools/call", `{"name":"echo","arguments":{"region":"eu"},"_meta":`+c.meta("")+`}`)
		q.Header = http.Header{}
		if got := string(r.dispatch(t.Context(), q)); strings.Contains(got, "Region") != (len(groups) > 0) {
			t.Errorf("in the groups %q: %s", groups, got)
		}
	}
	if len(r.judge.asked) != 1 {
		t.Errorf("%d calls were judged", len(r.judge.asked))
	}
}
