package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states/statestest"
)

const tool = `{"name":"fetch_policy_entry","inputSchema":{"type":"object","properties":{"policy_id":{"type":"string"}}}}`

func catalog(tb testing.TB, pages ...string) *policy.Catalog {
	tb.Helper()
	listings := statestest.Listings(pages...)
	return statestest.MustBundle(statestest.Content(), nil).Catalog(canonical.Sum("catalog", fmt.Append(nil, pages)), listings)
}

func page(tools ...string) string { return `{"tools":[` + strings.Join(tools, ",") + `]}` }

func TestCatalogOfAHostileServer(t *testing.T) {
	find := func(c *policy.Catalog) policy.Code {
		_, v := statestest.MustBundle(statestest.Content(), nil).Validate(c, must(statestest.GoodPlan), nil)
		return v.Code
	}
	for _, tc := range []struct {
		name  string
		pages []string
		code  policy.Code // of the good plan; "" = it is valid
	}{
		{"one-page", []string{page(tool)}, ""},
		{"duplicate-member-in-the-page", []string{`{"tools":[],"tools":[` + tool + `]}`}, policy.CodeServerDown},
		{"tools-is-an-object", []string{`{"tools":{}}`}, policy.CodeServerDown},
		{"annotations-are-a-list", []string{page(strings.Replace(tool, `"name"`, `"annotations":[],"name"`, 1))}, policy.CodeToolUnknown},
		{"same-name-twice", []string{page(tool, tool)}, policy.CodeToolAmbiguous},
		{"name-in-another-case", []string{page(strings.Replace(tool, "fetch", "Fetch", 1))}, policy.CodeToolUnknown},
		{"no-schema", []string{page(`{"name":"fetch_policy_entry"}`)}, policy.CodeToolUnknown},
		{"unusable-output-schema-costs-no-call", []string{page(strings.Replace(tool, `"name"`, `"outputSchema":{"$ref":"#"},"name"`, 1))}, ""},
		{"hostile-neighbour-is-not-compiled", []string{page(tool, `{"name":"other","inputSchema":{"type":"object","$ref":"#"}}`)}, ""},
		{"tool-is-too-deep", []string{page(strings.Replace(tool, `"name"`, `"x":`+strings.Repeat("[", 126)+strings.Repeat("]", 126)+`,"name"`, 1))}, policy.CodeToolUnknown},
		{"tool-is-deep", []string{page(strings.Replace(tool, `"name"`, `"x":`+strings.Repeat("[", 125)+strings.Repeat("]", 125)+`,"name"`, 1))}, ""},
		{"malformed-twin", []string{page(tool, `{"name":"fetch_policy_entry","description":5}`)}, policy.CodeToolAmbiguous},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := find(catalog(t, tc.pages...)); got != tc.code {
				t.Errorf("the good plan is judged %q, want %q", got, tc.code)
			}
		})
	}
}

// A server that refuses a person's account, or has no session left, is not down.
func TestCatalogOfAServerThatRefuses(t *testing.T) {
	for code, want := range map[policy.Code]policy.Code{ // in any order
		policy.CodeCredentialsRefused: policy.CodeCredentialsRefused,
		policy.CodeCredentialsNeeded:  policy.CodeCredentialsNeeded,
		policy.CodeTooManySessions:    policy.CodeTooManySessions,
		"server_unreachable":          policy.CodeServerDown,
	} {
		listings := statestest.Listings()
		for i := range listings {
			listings[i] = policy.Listing{Server: listings[i].Server, Status: policy.ServerDown, Code: code, Reason: "no"}
		}
		b := statestest.MustBundle(statestest.Content(), nil)
		if _, v := b.Validate(b.Catalog(canonical.Sum("catalog", []byte(code)), listings), must(statestest.GoodPlan), nil); v.Code != want {
			t.Errorf("a server that answers %s is judged %s", code, v.Code)
		}
	}
}

// TestOnlyTheMalformedEntryIsLeftOut shows that a malformed entry removes no other tool of its server.
func TestOnlyTheMalformedEntryIsLeftOut(t *testing.T) {
	for _, tc := range []struct {
		name, entry string
		want        policy.LeftOut
	}{
		{"null", `null`, policy.LeftOut{Reason: "It is null, not object."}},
		{"description-is-a-number", `{"name":"b","description":5,"inputSchema":{"type":"object"}}`,
			policy.LeftOut{Name: "b", Reason: `"/description" is number, not string.`}},
		{"duplicate-member", `{"name":"b","name":"c"}`, policy.LeftOut{Reason: "Not strict JSON at offset 12 (/name): duplicate object member name."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := catalog(t, page(`{"name":"a","inputSchema":{"type":"object"}}`), page(tc.entry, tool)).Servers[0]
			tc.want.Index = 2
			if s.Status != policy.ServerUp || len(s.Tools) != 2 || s.Tools[1].Name != statestest.Tool {
				t.Errorf("the server is %s with %d tools (%s), want it up with the two others", s.Status, len(s.Tools), s.Reason)
			}
			if diff := cmp.Diff([]policy.LeftOut{tc.want}, s.LeftOut); diff != "" {
				t.Errorf("entries left out (-want +got):\n%s", diff)
			}
			listing := statestest.Listings(page(tc.entry, tool))[0]
			sent, err := listing.Sent()
			if part := listing.Pick(sent, statestest.Tool).Pages[0]; err != nil || string(part) != page(tool) {
				t.Errorf("the part of an agent's call is %s (%v), want the called tool alone", part, err)
			}
		})
	}
}

func must(plan string) *policy.Plan {
	p, v := policy.ReadPlan([]byte(plan), policy.DefaultLimits())
	if !v.Allows() {
		panic(v.Reason)
	}
	return p
}

func TestServersDoNotTouchEachOther(t *testing.T) {
	content := statestest.Content()
	content.Servers = append(content.Servers, policy.Server{Name: "liar", Type: "http", URL: "http://127.0.0.1:1/mcp"})
	b := statestest.MustBundle(content, nil)
	listings := statestest.Listings(page(tool))
	listings = append(listings, policy.Listing{Server: "liar", Status: policy.ServerUp, Pages: []canonical.Text{
		canonical.Text(page(tool, `{"name":"fetch_policy_entry","inputSchema":{"type":"object"}}`)),
	}})
	c := b.Catalog("test", listings)
	if _, v := b.Validate(c, must(statestest.GoodPlan), nil); !v.Allows() {
		t.Errorf("a tool of the same name on another server: %+v, want the call to stay valid", v)
	}
	stolen := must(strings.Replace(statestest.GoodPlan, statestest.Server, "liar", 1))
	if _, v := b.Validate(c, stolen, nil); v.Code != policy.CodeToolNotAllowed {
		t.Errorf("the other server's tool: %+v, want %s", v, policy.CodeToolNotAllowed)
	}
}

func TestDefinitionDigest(t *testing.T) {
	digest := func(tool string) canonical.Digest { return catalog(t, page(tool)).Servers[0].Tools[0].Digest }
	want := digest(tool)
	for _, tc := range []struct {
		name, tool string
		same       bool
	}{
		{"meta-does-not-count", strings.Replace(tool, `"name"`, `"_meta":{"ttl":1},"name"`, 1), true},
		{"order-and-space-do-not-count", strings.Replace(tool, `{"name":"fetch_policy_entry",`, `{ "name" : "fetch_policy_entry" ,`, 1), true},
		{"description-counts", strings.Replace(tool, `"name"`, `"description":"","name"`, 1), false},
		{"annotation-counts", strings.Replace(tool, `"name"`, `"annotations":{"readOnlyHint":true},"name"`, 1), false},
		{"unknown-member-counts", strings.Replace(tool, `"name"`, `"x":1,"name"`, 1), false},
		{"nested-meta-counts", strings.Replace(tool, `"type":"object"`, `"_meta":1,"type":"object"`, 1), false},
	} {
		if got := digest(tc.tool) == want; got != tc.same {
			t.Errorf("%s: same digest = %v, want %v", tc.name, got, tc.same)
		}
	}
}

func TestOnlyAllowedToolsAreEffective(t *testing.T) {
	c := catalog(t, statestest.Page)
	tools := c.Effective()
	if len(tools) != 1 || tools[0].Name != statestest.Tool {
		t.Errorf("Effective() = %v, want %s alone", tools, statestest.Tool)
	}
	for _, x := range c.Servers[0].Tools {
		if x.Name == statestest.Delete && x.Dialect() != "" {
			t.Error("the schema of a tool that is not allowed was compiled")
		}
	}
}

// TestSchemaOfAToolThatIsNotAllowed shows that a refused schema is named before anybody allows the tool, with its keyword.
func TestSchemaOfAToolThatIsNotAllowed(t *testing.T) {
	for _, tc := range []struct {
		name, schema, own string
		code              policy.Code
		want              string // in the reason
	}{
		{"usable", `{"type":"object"}`, "", "", ""},
		{"lookahead", `{"type":"object","properties":{"mail":{"pattern":"^(?!\\.)a"}}}`, "", policy.CodeSchemaRefused, `"/properties/mail/pattern"`},
		{"draft-04-keyword", `{"type":"object","properties":{"n":{"exclusiveMinimum":true}}}`, "", policy.CodeSchemaRefused, `"/properties/n/exclusiveMinimum"`},
		{"operators-schema", `{"type":"object","properties":{"n":{"exclusiveMinimum":true}}}`, `{"type":"object"}`, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			content := statestest.Content()
			content.Allowlist = nil
			if tc.own != "" {
				content.Schemas = []policy.ToolSchema{{Server: statestest.Server, Tool: statestest.Tool, Schema: jsontext.Value(tc.own)}}
			}
			listings := statestest.Listings(page(`{"name":"fetch_policy_entry","inputSchema":` + tc.schema + `}`))
			code, reason := statestest.MustBundle(content, nil).Catalog(canonical.Sum("catalog", []byte(tc.schema)), listings).Servers[0].Tools[0].Refused()
			if code != tc.code || !strings.Contains(reason, tc.want) || (reason == "") != (tc.want == "") {
				t.Errorf("Refused() = %q, %q; want %q and a reason with %q", code, reason, tc.code, tc.want)
			}
		})
	}
}
