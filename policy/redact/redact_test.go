package redact_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/redact"
)

func compile(t *testing.T, rules ...redact.Rule) *redact.Set {
	t.Helper()
	set, err := redact.Compile(rules)
	check.NoError(t, err)
	return set
}

// TestResults shows what becomes of results: of the content types of both eras, structured, of errors, and of JSON in texts.
func TestResults(t *testing.T) {
	image := base64.StdEncoding.EncodeToString([]byte("PNG of +31612345678"))
	mail := redact.Rule{ID: "mail", Find: []string{"email"}}
	tests := []struct {
		name     string
		rule     redact.Rule
		in, want string // # in want is the mask
		hits     int
	}{
		{"nothing-to-find", mail, `{"content":[ {"type":"text", "text":"a @ b"}]}`, ``, 0},
		{"text-block", mail, `{"content":[{"type":"text","text":"to a@example.com."}]}`, `{"content":[{"type":"text","text":"to #."}]}`, 1},
		{"error-result", mail, `{"isError":true,"content":[{"type":"text","text":"no a@example.com"}]}`,
			`{"isError":true,"content":[{"type":"text","text":"no #"}]}`, 1},
		{"structured", mail, `{"structuredContent":{"to":["a@example.com","b"],"n":1.50}}`, `{"structuredContent":{"to":["#","b"],"n":1.50}}`, 1},
		{"embedded-resource", mail, `{"content":[{"type":"resource","resource":{"uri":"x:1","text":"a@example.com"}}]}`,
			`{"content":[{"type":"resource","resource":{"uri":"x:1","text":"#"}}]}`, 1},
		{"resource-link", mail, `{"content":[{"type":"resource_link","uri":"mailto:a@example.com","name":"b@example.com"}]}`,
			`{"content":[{"type":"resource_link","uri":"mailto:#","name":"#"}]}`, 2},
		{"resources-read", mail, `{"contents":[{"uri":"x:1","text":"a@example.com"}]}`, `{"contents":[{"uri":"x:1","text":"#"}]}`, 1},
		{"prompt", mail, `{"messages":[{"role":"user","content":{"type":"text","text":"a@example.com"}}]}`,
			`{"messages":[{"role":"user","content":{"type":"text","text":"#"}}]}`, 1},
		{"progress", mail, `{"progressToken":"7","progress":1,"message":"at a@example.com"}`, `{"progressToken":"7","progress":1,"message":"at #"}`, 1},
		{"log", mail, `{"level":"info","data":{"m":"a@example.com"}}`, `{"level":"info","data":{"m":"#"}}`, 1},
		{"input-required", mail, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Is a@example.com right?"}}}}`,
			`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Is # right?"}}}}`, 1},
		{"meta", mail, `{"content":[],"_meta":{"by":"a@example.com"}}`, `{"content":[],"_meta":{"by":"#"}}`, 1},
		{"escaped", mail, `{"content":[{"type":"text","text":"a\u0040example.com"}]}`, `{"content":[{"type":"text","text":"#"}]}`, 1},
		{"json-in-a-text", mail, `{"content":[{"type":"text","text":"{\"to\": \"andr\\u00e9\\u0040example.com\", \"n\": 1}"}]}`,
			`{"content":[{"type":"text","text":"{\"to\": \"#\", \"n\": 1}"}]}`, 1},
		{"json-in-json-in-a-text", mail, `{"content":[{"type":"text","text":"[\"{\\\"a\\\":\\\"a\\\\u0040example.com\\\"}\"]"}]}`,
			`{"content":[{"type":"text","text":"[\"{\\\"a\\\":\\\"#\\\"}\"]"}]}`, 1},
		{"looks-like-json", mail, `{"content":[{"type":"text","text":"{a@example.com} [b@example.com"}]}`,
			`{"content":[{"type":"text","text":"{#} [#"}]}`, 2},
		{"json-lines", mail, `{"content":[{"type":"text","text":"{\"a\":\"a@example.com\"}\n{}"}]}`,
			`{"content":[{"type":"text","text":"{\"a\":\"#\"}\n{}"}]}`, 1},
		{"a-number", redact.Rule{ID: "card", Find: []string{"card"}}, `{"structuredContent":{"card":4111111111111111}}`,
			`{"structuredContent":{"card":"#"}}`, 1},
		{"several-detectors", redact.Rule{ID: "all", Find: []string{"email", "phone"}}, `{"content":[{"type":"text","text":"a@example.com +31612345678"}]}`,
			`{"content":[{"type":"text","text":"# #"}]}`, 2},
		{"pattern", redact.Rule{ID: "own", Pattern: `EMP-\d{4}`}, `{"content":[{"type":"text","text":"EMP-1234 emp-1234"}]}`,
			`{"content":[{"type":"text","text":"# emp-1234"}]}`, 1},
		{"pattern-like-a-type", redact.Rule{ID: "own", Pattern: `text`}, `{"content":[{"type":"text","text":"a"}]}`, `withheld`, 1},
		{"pattern-hits-no-type", redact.Rule{ID: "own", Pattern: `image`}, `{"content":[{"type":"image","data":"","mimeType":"x"}],"k":"image"}`,
			`{"content":[{"type":"image","data":"","mimeType":"x"}],"k":"#"}`, 1},
		{"pointer", redact.Rule{ID: "at", At: []string{"/born"}}, `{"structuredContent":{"born":"1980","x":{"born":1}},"born":2}`,
			`{"structuredContent":{"born":"#","x":{"born":1}},"born":2}`, 1},
		{"pointer-with-a-star", redact.Rule{ID: "at", At: []string{"/list/*/a~1b"}}, `{"structuredContent":{"list":[{"a/b":[1]},{"a/b":null},{"c":0}]}}`,
			`{"structuredContent":{"list":[{"a/b":"#"},{"a/b":null},{"c":0}]}}`, 1},
		{"pointer-into-a-text", redact.Rule{ID: "at", At: []string{"/born"}}, `{"content":[{"type":"text","text":"{\"born\":\"1 May 1980\"}"}]}`,
			`{"content":[{"type":"text","text":"{\"born\":\"#\"}"}]}`, 1},
		{"value-at-a-pointer-elsewhere", redact.Rule{ID: "at", At: []string{"/born"}},
			`{"content":[{"type":"text","text":"born 1 May 1980"}],"structuredContent":{"born":"1 May 1980"}}`,
			`{"content":[{"type":"text","text":"born #"}],"structuredContent":{"born":"#"}}`, 2},
		{"short-value-stays-elsewhere", redact.Rule{ID: "at", At: []string{"/id"}},
			`{"content":[{"type":"text","text":"id 42"}],"structuredContent":{"id":42}}`,
			`{"content":[{"type":"text","text":"id 42"}],"structuredContent":{"id":"#"}}`, 1},
		{"image-is-not-searched", redact.Rule{ID: "tel", Find: []string{"phone"}}, `{"content":[{"type":"image","data":"` + image + `","mimeType":"image/png"}]}`, ``, 0},
		{"no-base64-is-searched", mail, `{"content":[{"type":"image","data":"a@example.com"}]}`, `{"content":[{"type":"image","data":"#"}]}`, 1},
		{"image-withheld", redact.Rule{ID: "bin", Binary: redact.Withhold}, `{"content":[{"type":"text","text":"a"},{"data":"` + image + `","type":"image","mimeType":"image/png"},{"type":"audio","mimeType":"b","data":"AAAA"}]}`,
			`{"content":[{"type":"text","text":"a"},{"type":"text","text":"#"},{"type":"text","text":"#"}]}`, 2},
		{"blob-withheld", redact.Rule{ID: "bin", Binary: redact.Withhold}, `{"content":[{"type":"resource","resource":{"blob":"AAAA","uri":"x:1"}}],"structuredContent":{"blob":"AAAA"}}`,
			`{"content":[{"type":"resource","resource":{"text":"#","uri":"x:1"}}],"structuredContent":{"blob":"AAAA"}}`, 1},
		{"blob-of-resources-read-withheld", redact.Rule{ID: "bin", Binary: redact.Withhold}, `{"contents":[{"uri":"x:1","blob":"AAAA"}]}`,
			`{"contents":[{"uri":"x:1","text":"#"}]}`, 1},
		{"name-of-a-member", mail, `{"structuredContent":{"a@example.com":1}}`, `withheld`, 1},
		{"name-of-a-member-in-a-text", mail, `{"content":[{"type":"text","text":"{\"a@example.com\":1}"}]}`, `withheld`, 1},
		{"no-json", mail, `{"content":`, `withheld`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := compile(t, tt.rule)
			done := set.Document([]byte(tt.in))
			want := strings.ReplaceAll(tt.want, "#", redact.Mask)
			if tt.want == "" {
				want = tt.in
			}
			if tt.want == "withheld" {
				want = ""
			}
			if diff := cmp.Diff(want, string(done.Text)); diff != "" || done.Withheld != (tt.want == "withheld") {
				t.Errorf("Document() = %+v (-want +got):\n%s", done, diff)
			}
			count := 0
			for _, hit := range done.Hits {
				count += hit.Count
			}
			if count != tt.hits {
				t.Errorf("%d removed, want %d", count, tt.hits)
			}
		})
	}
}

func TestRulesThatApply(t *testing.T) {
	set := compile(t, redact.Rule{ID: "one", Server: "crm", Tool: "get_*", Find: []string{"email"}},
		redact.Rule{ID: "two", Server: "h?", Find: []string{"phone"}})
	doc := []byte(`{"content":[{"type":"text","text":"a@example.com +31612345678"}]}`)
	for name, want := range map[string]string{"crm/get_one": "one", "crm/list": "", "hr/get_one": "two", "crm/": "one", "hr/": "two", "x/": ""} {
		server, tool, _ := strings.Cut(name, "/")
		done := set.For(server, tool).Document(doc)
		if len(done.Hits) != len(want)/3 || want != "" && done.Hits[0].Rule != want {
			t.Errorf("%s: %+v, want rule %q", name, done.Hits, want)
		}
	}
}

func TestCompile(t *testing.T) {
	many := make([]redact.Rule, redact.MaxRules+1)
	for name, tt := range map[string]struct {
		rules []redact.Rule
		want  string
	}{
		"unknown-detector":     {[]redact.Rule{{ID: "a", Find: []string{"names"}}}, "no detector"},
		"nothing":              {[]redact.Rule{{ID: "a"}}, "removes nothing"},
		"twice":                {[]redact.Rule{{ID: "a", Pattern: "x"}, {ID: "a", Pattern: "z"}}, "twice"},
		"pattern-of-nothing":   {[]redact.Rule{{ID: "a", Pattern: "x*"}}, "empty text"},
		"pattern-of-the-mask":  {[]redact.Rule{{ID: "a", Pattern: "by pg"}}, "replaces what it finds"},
		"pattern-too-large":    {[]redact.Rule{{ID: "a", Pattern: strings.Repeat("[a-z]{99}", 99)}}, "instructions"},
		"patterns-too-large":   {[]redact.Rule{{ID: "a", Pattern: "(a.b){999}"}, {ID: "b", Pattern: "(b.a){999}"}}, "instructions"},
		"pointer-to-all":       {[]redact.Rule{{ID: "a", At: []string{""}}}, "JSON pointer"},
		"no-pointer":           {[]redact.Rule{{ID: "a", At: []string{"a"}}}, "JSON pointer"},
		"binary-is-misspelled": {[]redact.Rule{{ID: "a", Binary: "withold"}}, "removes nothing"},
		"too-many":             {many, "more than 64"},
	} {
		if set, err := redact.Compile(tt.rules); err == nil || !strings.Contains(err.Error(), tt.want) || set != nil {
			t.Errorf("%s: Compile() = %v, want %q", name, err, tt.want)
		}
	}
}

// TestPropertyOnlyFindingsChange applies rules to random documents: the second time changes nothing, and every string and
// number without a finding stays, byte for byte.
func TestPropertyOnlyFindingsChange(t *testing.T) {
	set := compile(t, redact.Rule{ID: "all", Find: detectors}, redact.Rule{ID: "own", Pattern: `EMP-\d+`})
	words := []string{"a@example.com", "NL91ABNA0417164300", "4111 1111 1111 1111", "078-05-1120", "+31612345678", "EMP-1", " ", "x", "@", "+1", "4111",
		"\u00e9", "\"", "\\", "\n", "{", "]", "電", "\U0001F600", "-", "1"}
	random := rand.New(rand.NewPCG(41, 3))
	var value func(depth int) string
	text := func(clean bool) string {
		var b strings.Builder
		for range random.IntN(6) {
			if w := words[random.IntN(len(words))]; !clean || len(w) < 3 {
				b.WriteString(w)
			}
		}
		quoted, _ := jsontext.AppendQuote(nil, b.String())
		return string(quoted)
	}
	value = func(depth int) string {
		switch kind := random.IntN(5); {
		case kind == 0 && depth > 0:
			return fmt.Sprintf(`{%s : %s}`, text(true), value(depth-1))
		case kind == 1 && depth > 0:
			return fmt.Sprintf(`[ %s,%s ]`, value(depth-1), value(depth-1))
		case kind == 2 && depth > 0:
			quoted, _ := jsontext.AppendQuote(nil, value(depth-1))
			return string(quoted)
		case kind == 3:
			return []string{"1.0", "4111111111111111", "null", "12", "1e3"}[random.IntN(5)]
		}
		return text(false)
	}
	changed := 0
	for range 20000 {
		doc := value(4)
		done := set.Data([]byte(doc))
		if done.Withheld { // a text of JSON has a finding in a name
			continue
		}
		if again := set.Data(done.Text); len(again.Hits) > 0 || string(again.Text) != string(done.Text) {
			t.Fatalf("%s becomes %s, and that %s", doc, done.Text, again.Text)
		}
		if len(done.Hits) == 0 && string(done.Text) != doc {
			t.Fatalf("%s becomes %s without a finding", doc, done.Text)
		}
		before, after := values(t, []byte(doc)), values(t, done.Text)
		if len(before) != len(after) {
			t.Fatalf("%s becomes %s", doc, done.Text)
		}
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			changed++
			if one := set.Data([]byte(before[i])); len(one.Hits) == 0 || string(one.Text) != after[i] {
				t.Fatalf("%s becomes %s in %s", before[i], after[i], doc)
			}
		}
	}
	if changed < 1000 {
		t.Errorf("only %d values changed", changed)
	}
}

// values returns the strings, numbers and literals of a document as they are written.
func values(t *testing.T, doc []byte) (all []string) {
	dec := jsontext.NewDecoder(strings.NewReader(string(doc)), jsontext.AllowDuplicateNames(true))
	for {
		switch dec.PeekKind() {
		case '{', '}', '[', ']':
			if _, err := dec.ReadToken(); err != nil {
				t.Fatal(err)
			}
		case 0:
			return all
		default:
			raw, err := dec.ReadValue()
			check.NoError(t, err)
			all = append(all, string(raw))
		}
	}
}

// TestTooLargeForThePatterns withholds what would take too long.
func TestTooLargeForThePatterns(t *testing.T) {
	set := compile(t, redact.Rule{ID: "own", Pattern: "(a.b){500}"})
	doc := []byte(`"` + strings.Repeat("x", 16<<20) + `"`)
	if done := set.Data(doc); !done.Withheld || done.Text != nil {
		t.Errorf("Data() withheld: %t", done.Withheld)
	}
}
