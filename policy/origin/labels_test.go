package origin_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
)

func TestCompileErrors(t *testing.T) {
	tool := func(l origin.ToolLabel) origin.Labels {
		if l.Server == "" {
			l.Server, l.Tool = "s", "t"
		}
		return origin.Labels{Tools: []origin.ToolLabel{l}}
	}
	role := func(target, amount []string) origin.Labels {
		return origin.Labels{Roles: []origin.RoleLabel{{Server: "s", Tool: "t", Target: target, Amount: amount}}}
	}
	double := origin.ToolLabel{Server: "s", Tool: "t"}
	twice := origin.RoleLabel{Server: "s", Tool: "t", Target: []string{"a"}}

	for name, test := range map[string]struct { // the order does not matter
		labels origin.Labels
		want   string
	}{
		"tool-as-glob":         {tool(origin.ToolLabel{Server: "s", Tool: "get_*"}), "one entry for each tool instead of"},
		"tool-twice":           {origin.Labels{Tools: []origin.ToolLabel{double, double}}, "tools[1]: the tool has an entry already"},
		"items-alone":          {tool(origin.ToolLabel{Items: "/*"}), "write both or neither"},
		"condition-alone":      {tool(origin.ToolLabel{TrustedIf: "true"}), "write both or neither"},
		"trusted-twice":        {tool(origin.ToolLabel{Results: "trusted", Trusted: []string{"/a"}}), "covers all places"},
		"prefix-of-nothing":    {tool(origin.ToolLabel{Prefix: true}), "tools[0].prefix: "},
		"place-without-slash":  {tool(origin.ToolLabel{Trusted: []string{"/a", "b"}}), "tools[0].trusted[1]: \"b\" is no JSON pointer"},
		"place-with-tilde":     {tool(origin.ToolLabel{Creates: []string{"/a~b"}}), "tools[0].creates[0]: "},
		"place-too-deep":       {tool(origin.ToolLabel{Items: strings.Repeat("/a", origin.MaxDepth+1), TrustedIf: "a"}), "more than 32"},
		"no-role":              {role(nil, nil), "roles[0]: no argument has a role"},
		"role-twice":           {role([]string{"a"}, []string{"a"}), "roles[0].amount[0]: \"a\" has the role target already"},
		"role-with-empty-name": {role([]string{"a..b"}, nil), "roles[0].target[0]: "},
		"role-as-pointer":      {role([]string{"a", "/b"}, nil), "roles[0].target[1]: \"/b\" is no path of an argument; write names with dots"},
		"role-as-path":         {role([]string{"a/*/b"}, nil), "roles[0].target[0]: "},
		"roles-twice":          {origin.Labels{Roles: []origin.RoleLabel{twice, twice}}, "roles[1]: "},
		"every-fault":          {origin.Labels{Tools: []origin.ToolLabel{{Tool: "*", Items: "x"}}}, "tools[0].tool: server and tool name one tool; write one entry for each tool instead of *\ntools[0]: items and trusted_if need each other; write both or neither\ntools[0].items: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := origin.Compile(test.labels)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestFound(t *testing.T) {
	rules, err := origin.Compile(origin.Labels{Roles: []origin.RoleLabel{{
		Server: "mail", Tool: "send", Target: []string{"to", "items.*.id", `a\.b.c`}, Content: []string{"text", "many"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	session := &origin.Session{Prompts: []origin.Prompt{{Entry: 1, Source: "user", Text: "Write Alice about number 17 and hello"}}}
	many := strings.Repeat(`"hello",`, origin.MaxLeaves)
	schema := `{"properties":{"kind":{"anyOf":[{"$ref":"#/$defs/kind"},{"type":"null"}]}},"$defs":{"kind":{"enum":["big","small"]}}}`

	for name, test := range map[string]struct { // the order does not matter
		args  string
		paths []string
		want  bool
	}{
		"target-found":                {`{"text":"nowhere","to":"Alice"}`, nil, true},
		"target-not-found":            {`{"to":"Malice"}`, nil, false},
		"one-of-two-targets":          {`{"items":[{"id":"zzzz"}],"to":"Alice"}`, nil, false},
		"target-absent":               {`{"text":"hello"}`, nil, false},
		"target-empty":                {`{"to":[]}`, nil, false},
		"target-null":                 {`{"to":null}`, nil, false},
		"arguments-are-a-list":        {`["Alice"]`, nil, false},
		"arguments-are-broken":        {`{"to":"Alice"`, nil, false},
		"member-twice":                {`{"to":"Alice","to":"Alice"}`, nil, false},
		"content-by-path":             {`{"text":"hello","to":"Malice"}`, []string{"text"}, true},
		"content-not-found":           {`{"text":"nowhere"}`, []string{"text"}, false},
		"path-absent":                 {`{"to":"Alice"}`, []string{"text"}, false},
		"two-paths":                   {`{"text":"nowhere","to":"Alice"}`, []string{"to", "text"}, false},
		"scalar-above-a-target":       {`{"items":"zzzz","to":"Alice"}`, nil, false},
		"found-above-a-target":        {`{"items":"hello","to":"Alice"}`, nil, true},
		"null-above-a-target":         {`{"items":null,"to":"Alice"}`, nil, true},
		"path-with-star":              {`{"items":[{"id":17},{"id":"zzzz"}]}`, []string{"items/*/id"}, false},
		"name-at-a-star":              {`{"items":{"zzzz":{"id":"Alice"}}}`, nil, false},
		"name-at-a-star-found":        {`{"items":{"hello":{"id":"Alice"}}}`, nil, true},
		"path-with-star-found":        {`{"items":[{"id":"Alice","x":"zzzz"},{"id":"hello"}]}`, []string{"items/*/id"}, true},
		"path-covers-what-is-below":   {`{"items":[{"id":"Alice","x":"zzzz"}]}`, []string{"items"}, false},
		"path-broken":                 {`{"to":"Alice"}`, []string{"to~"}, false},
		"exempt-beside-found":         {`{"more":{"a":"Alice","b":null,"c":true}}`, []string{"more"}, true},
		"exempt-alone":                {`{"more":{"b":null,"c":true}}`, []string{"more"}, false},
		"enum-is-exempt-but-alone":    {`{"kind":"big"}`, []string{"kind"}, false},
		"256-leaves":                  {`{"many":[` + many[8*1:len(many)-1] + `],"to":"Alice"}`, nil, true},
		"257-leaves":                  {`{"many":[` + many[:len(many)-1] + `],"to":"Alice"}`, nil, false},
		"dot-in-a-name":               {`{"a.b":{"c":"Alice"},"to":"Alice"}`, nil, true},
		"dot-in-a-name-not-found":     {`{"a.b":{"c":"zzzz"},"to":"Alice"}`, nil, false},
		"dot-between-names":           {`{"a":{"b":{"c":"zzzz"}},"to":"Alice"}`, nil, true},
		"257-leaves-without-role":     {`{"free":[` + many + `"hello"],"to":"Alice"}`, nil, true},
		"257-leaves-without-role-too": {`{"free":[` + many + `"hello"],"to":"Alice"}`, []string{"to"}, false},
		"deeper-than-the-limit":       {`{"to":["Alice",` + strings.Repeat("[", 40) + `"Alice"` + strings.Repeat("]", 40) + `]}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			leaves := rules.Find(session, "mail", "send", []byte(test.args), []byte(schema))
			if got := origin.Found(leaves, test.paths...); got != test.want {
				t.Errorf("got %v, want %v: %+v", got, test.want, leaves[:min(len(leaves), 5)])
			}
			if origin.Found(rules.Find(nil, "mail", "send", []byte(test.args), nil), test.paths...) {
				t.Error("found without a session")
			}
			var none *origin.Rules
			if origin.Found(none.Find(session, "mail", "send", []byte(test.args), nil)) || origin.Found(rules.Find(session, "mail", "other", []byte(test.args), nil)) {
				t.Error("found without roles")
			}
		})
	}
}

func TestBrokenArgumentsAreATarget(t *testing.T) {
	for _, args := range []string{``, `[]`, `{`, `{"a":1,"a":1}`, `"Alice"`} {
		want := origin.Leaf{Role: origin.Target, Origin: origin.None}
		if leaves := (*origin.Rules)(nil).Find(&origin.Session{}, "s", "t", []byte(args), nil); len(leaves) != 1 || leaves[0] != want {
			t.Errorf("%q: got %+v, want %+v", args, leaves, want)
		}
	}
}

func TestEnumIsExempt(t *testing.T) {
	for name, test := range map[string]struct { // the order does not matter
		schema string
		want   bool
	}{
		"enum":                {`{"properties":{"kind":{"enum":["big"]}}}`, true},
		"const":               {`{"properties":{"kind":{"const":"big"}}}`, true},
		"combined":            {`{"allOf":[{"properties":{"kind":{"oneOf":[{"enum":["big"]}]}}}]}`, true},
		"other-members":       {`{"properties":{"kind":{"enum":["small"]}}}`, false},
		"enum-of-another":     {`{"properties":{"size":{"enum":["big"]}}}`, false},
		"reference-to-itself": {`{"$ref":"#/allOf/0","allOf":[{"$ref":"#/allOf/0"}],"properties":{"kind":{"enum":["big"]}}}`, false},
		"endless-reference":   {`{"properties":{"kind":{"$ref":"#/properties/kind","enum":["big"]}}}`, false},
		"no-schema":           {`true`, false},
	} {
		t.Run(name, func(t *testing.T) {
			leaves := (*origin.Rules)(nil).Find(&origin.Session{}, "s", "t", []byte(`{"kind":"big"}`), []byte(test.schema))
			if len(leaves) != 1 || leaves[0].Exempt != test.want {
				t.Errorf("got %+v, want exempt: %v", leaves, test.want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	schema := `{"properties":{"to":{"type":"array","items":{"$ref":"#/$defs/to"}},"force":{"type":["boolean","null"]},
		"size":{"anyOf":[{"type":"object","properties":{"unit":{"enum":["m"]}}},{"type":"null"}]},"tree":{"$ref":"#/$defs/tree"}},
		"$defs":{"tree":{"properties":{"child":{"$ref":"#/$defs/tree"},"leaf":{"type":"boolean"}}},"to":{"type":"string","format":"email"}}}`
	all := origin.Arguments([]byte(schema))
	for _, want := range []origin.Argument{
		{Path: []string{"force"}, Bool: true},
		{Path: []string{"tree", "child", "leaf"}, Bool: true},
		{Path: []string{"size", "unit"}, Enum: true},
		{Path: []string{"to", "*"}, Format: "email"},
	} {
		if !slices.ContainsFunc(all, func(a origin.Argument) bool { return reflect.DeepEqual(a, want) }) {
			t.Errorf("%+v is not among %+v", want, all)
		}
	}
	if len(all) > origin.MaxLeaves || !reflect.DeepEqual(all, origin.Arguments([]byte(schema))) {
		t.Errorf("a schema within itself has %d arguments, or others each time", len(all))
	}
	if none := origin.Arguments([]byte(`true`)); len(none) > 0 {
		t.Errorf("got %+v of no object", none)
	}
}

func TestSessionLabels(t *testing.T) {
	rules, err := origin.Compile(origin.Labels{Tools: []origin.ToolLabel{
		{Server: "s", Tool: "trusted", Results: "trusted"},
		{Server: "s", Tool: "private", Results: "trusted", Private: true},
		{Server: "s", Tool: "partly", Trusted: []string{"/a"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct { // the order does not matter
		tools              []string
		untrusted, private bool
	}{
		"no-result":       {nil, false, false},
		"trusted":         {[]string{"trusted"}, false, false},
		"partly-trusted":  {[]string{"trusted", "partly"}, true, false},
		"without-a-label": {[]string{"other", "trusted"}, true, false},
		"private":         {[]string{"private", "trusted"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &origin.Session{}
			for _, tool := range test.tools {
				s.Results = append(s.Results, origin.Result{Server: "s", Tool: tool})
			}
			if untrusted, private := rules.Untrusted(s), rules.Private(s); untrusted != test.untrusted || private != test.private {
				t.Errorf("got untrusted %v and private %v, want %v and %v", untrusted, private, test.untrusted, test.private)
			}
		})
	}
	if !rules.Untrusted(nil) || !rules.Private(nil) {
		t.Error("without a session all may be there")
	}
}

func TestLongPromptIsPasted(t *testing.T) {
	for _, pasted := range []bool{false, true} {
		rules, err := origin.Compile(origin.Labels{Prompts: origin.PromptLabel{Pasted: pasted}})
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]bool{origin.MaxTyped: true, origin.MaxTyped + 1: pasted} { // the order does not matter
			text := "ask Alice" + strings.Repeat(" ", size-len("ask Alice"))
			session := &origin.Session{Prompts: []origin.Prompt{{Entry: 1, Source: "user", Text: text}}}
			leaves := rules.Find(session, "s", "t", []byte(`{"to":"Alice"}`), nil)
			if got := leaves[0].Origin == origin.Request; got != want {
				t.Errorf("%d bytes, pasted %v: got request %v, want %v", size, pasted, got, want)
			}
		}
	}
}

// FuzzPlaces compiles any place, and looks for the value that the place points to.
func FuzzPlaces(f *testing.F) {
	f.Add("/contacts/*/email", `{"contacts":[{"email":"bob@x.com"}]}`)
	f.Add("/a~1b/~0", `{"a/b":{"~":"bob@x.com"}}`)
	f.Add("", `"bob@x.com"`)
	f.Fuzz(func(t *testing.T, place, doc string) {
		rules, err := origin.Compile(origin.Labels{Tools: []origin.ToolLabel{{Server: "s", Tool: "t", Trusted: []string{place}, Text: "json"}}})
		if err != nil {
			return
		}
		value, err := canonical.JSON([]byte(doc))
		if err != nil || len(doc) > 4096 {
			return
		}
		session := &origin.Session{Results: []origin.Result{{Run: "r", Call: 1, Entry: 2, Server: "s", Tool: "t", Value: value}}}
		for _, leaf := range rules.Find(session, "s", "u", []byte(`{"to":"bob@x.com"}`), nil) {
			pattern, got := strings.Split(place, "/"), strings.Split(leaf.Place, "/")
			if leaf.Origin == origin.None {
				continue
			}
			if len(pattern) != len(got) || !strings.Contains(fmt.Sprint(doc), "x") {
				t.Errorf("%q of %q: %+v", place, doc, leaf)
			}
			for i := range pattern {
				if pattern[i] != "*" && pattern[i] != got[i] {
					t.Errorf("%q of %q: %+v", place, doc, leaf)
				}
			}
		}
	})
}

// FuzzText looks for any value in any prompt: no panic, and the evidence holds.
func FuzzText(f *testing.F) {
	f.Add("Send it to bob@x.com", "bob@x.com")
	f.Add("pay DE89 3704 0044 0532 0130 00 and $1,234.50", "DE89370400440532013000")
	f.Add("on November 27th, 2026 > x ```y``` \uff42ob", "2026-11-27")
	f.Fuzz(func(t *testing.T, prompt, value string) {
		args, err := canonical.Marshal(map[string]string{"to": value})
		if err != nil {
			return
		}
		session := &origin.Session{Prompts: []origin.Prompt{{Entry: 7, Source: "user", Text: prompt}}}
		for _, leaf := range (*origin.Rules)(nil).Find(session, "s", "t", args, nil) {
			if leaf.Origin == origin.Request && (leaf.Start < 0 || leaf.Start >= leaf.End || leaf.End > len(prompt)) {
				t.Errorf("%q in %q: %+v", value, prompt, leaf)
			}
			if leaf.Origin == origin.Request && leaf.Form == "" && !strings.EqualFold(clean(prompt[leaf.Start:leaf.End]), clean(value)) {
				t.Errorf("%q in %q: %q: %+v", value, prompt, prompt[leaf.Start:leaf.End], leaf)
			}
		}
	})
}

// BenchmarkFind looks for three arguments in a session with 20 trusted results of 4 KiB; floor reads these results once.
func BenchmarkFind(b *testing.B) {
	rules, err := origin.Compile(origin.Labels{
		Tools: []origin.ToolLabel{{Server: "mail", Tool: "list", Results: "trusted"}},
		Roles: []origin.RoleLabel{{Server: "mail", Tool: "send", Target: []string{"to"}, Amount: []string{"amount"}, Content: []string{"text"}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	session := &origin.Session{Prompts: []origin.Prompt{{Entry: 1, Source: "user", Text: "Look through my contacts.\nPay Robert $250.00, as in his last mail, and tell him."}}}
	for i := range 20 {
		var contacts []map[string]string
		for k := range 44 {
			contacts = append(contacts, map[string]string{"email": fmt.Sprintf("user%d.%d@example.com", i, k), "name": "Somebody of the office", "phone": fmt.Sprintf("+49 30 %07d", 1000*i+k)})
		}
		session.Results = append(session.Results, origin.Result{Run: fmt.Sprint(i), Call: int64(2*i + 1), Entry: int64(2*i + 2), Server: "mail", Tool: "list",
			Value: canonical.MustMarshal(map[string]any{"contacts": contacts})})
	}
	size := len(session.Results[0].Value)
	if size < 3800 || size > 4400 {
		b.Fatalf("a result has %d bytes, want 4 KiB", size)
	}
	b.Run("floor", func(b *testing.B) { // the results are read once
		for b.Loop() {
			for i := range session.Results {
				if err := canonical.Check(session.Results[i].Value, origin.MaxDepth); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	for name, args := range map[string]string{ // the order does not matter
		"in-a-result": `{"amount":250,"text":"Dear Robert,\nhere is the money.","to":"user19.7@example.com"}`,
		"nowhere":     `{"amount":199,"text":"Dear Robert,\nhere is the money.","to":"user20.7@example.com"}`,
		"iban":        `{"amount":250,"text":"Dear Robert,\nhere is the money.","to":"DE89370400440532013000"}`,
		"url":         `{"amount":250,"text":"Dear Robert,\nhere is the money.","to":"https://example.com/a/b"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Find(session, "mail", "send", []byte(args), nil)
			}
		})
	}
}

// TestFoundAtManyPlaces: the search takes a moment, and many minutes if each place is compared with each other one.
func TestFoundAtManyPlaces(t *testing.T) {
	rules, err := origin.Compile(origin.Labels{
		Tools: []origin.ToolLabel{{Server: "bank", Tool: "list", Results: "trusted"}},
		Roles: []origin.RoleLabel{{Server: "bank", Tool: "pay", Target: []string{"currency"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	list := `["` + strings.Repeat(`Swiss franc","`, 50_000) + `x"]`
	session := &origin.Session{Results: []origin.Result{{Run: "1", Call: 1, Entry: 2, Server: "bank", Tool: "list", Value: []byte(list)}}}
	if leaves := rules.Find(session, "bank", "pay", []byte(`{"currency":"Swiss franc"}`), nil); !origin.Found(leaves) || leaves[0].Place != "/0" {
		t.Errorf("found %+v", leaves)
	}
}
