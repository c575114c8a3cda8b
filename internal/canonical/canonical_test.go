package canonical_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ name, doc, says string }{
		{"object", `{"a":[1,{"b":null}]}`, ""},
		{"number-of-any-size", `123456789012345678901234567890e-999999`, ""},
		{"empty", ``, "strict JSON"},
		{"byte-order-mark", "\ufeff{}", "strict JSON"},
		{"duplicate", `{"a":1,"a":1}`, "duplicate"},
		{"duplicate-deep", `[{"x":{"a":1,"a":1}}]`, "duplicate"},
		{"two-values", `{} {}`, "behind the JSON value"},
		{"nan", `NaN`, "strict JSON"},
		{"lone-surrogate", `"\udc00"`, "strict JSON"},
		{"invalid-utf8", "\"\xc0\x80\"", "strict JSON"},
		{"depth-at-the-limit", strings.Repeat("[", 8) + strings.Repeat("]", 8), ""},
		{"depth-one-past", strings.Repeat("[", 9) + strings.Repeat("]", 9), "more than 8 levels"},
		{"brackets-in-strings-do-not-nest", `"` + strings.Repeat(`[{\"`, 50) + `"`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := canonical.Check([]byte(tc.doc), 8)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("Check(%q) = %v, want %q", tc.doc, err, tc.says)
			}
		})
	}
	if err := canonical.Check([]byte(strings.Repeat("[", canonical.MaxDepth+1)), 0); !errors.Is(err, canonical.ErrTooDeep) {
		t.Errorf("Check() without a limit of its own = %v, want %v", err, canonical.ErrTooDeep)
	}
}

// TestJSON holds the canonical form to RFC 8785, except that numbers keep their literal.
func TestJSON(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{
		{"white-space-goes", " { \"a\" : [ 1 , 2 ] } ", `{"a":[1,2]}`},
		{"members-by-utf16", "{\"\ufb33\":1,\"\U0001f600\":2,\"\\u20ac\":3,\"\\r\":4,\"1\":5,\"ö\":6}", "{\"\\r\":4,\"1\":5,\"ö\":6,\"€\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
		{"numbers-stay", `[1.0,1e2,-0,9007199254740993,1E400]`, `[1.0,1e2,-0,9007199254740993,1E400]`},
		{"strings-have-one-spelling", `"\u0041\/\u00e9\u000a\u001f\u2028"`, "\"A/é\\n\\u001f\u2028\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := canonical.JSON([]byte(tc.doc))
			if err != nil || string(got) != tc.want {
				t.Errorf("JSON(%s) = %s, %v; want %s", tc.doc, got, err, tc.want)
			}
		})
	}
}

// TestReadObject: an Object has the canonical form of one JSON object, and nothing else is one.
func TestReadObject(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{ // want is empty: it is refused
		{"canonical", `{"a":1}`, `{"a":1}`},
		{"unordered", ` {"b":1, "a":"\u0041"}`, `{"a":"A","b":1}`},
		{"name-twice", `{"a":1,"a":1}`, ""},
		{"null", `null`, ""},
		{"array", `[{}]`, ""},
		{"text-behind", `{}{}`, ""},
		{"invalid-utf8", "{\"a\":\"\xff\"}", ""},
		{"nothing", ``, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := canonical.ReadObject([]byte(tc.doc))
			if string(o.Bytes()) != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("ReadObject(%q) = %s, %v, want %q", tc.doc, o.Bytes(), err, tc.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		name string
		text canonical.Text
		want string
	}{
		{"utf8", canonical.Text("a\"\n\x00é"), `"a\"\n\u0000é"`},
		{"empty", canonical.Text{}, `""`},
		{"not-utf8", canonical.Text("a\xff"), `{"base64":"Yf8="}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := json.Marshal(tc.text)
			if err != nil || string(got) != tc.want {
				t.Fatalf("Marshal() = %s, %v; want %s", got, err, tc.want)
			}
			var back canonical.Text
			if err := canonical.Unmarshal(got, &back); err != nil || string(back) != string(tc.text) {
				t.Errorf("Unmarshal(%s) = %q, %v; want %q", got, back, err, tc.text)
			}
		})
	}
	for name, doc := range map[string]string{
		"base64-of-utf8":      `{"base64":"YQ=="}`,
		"base64-of-nothing":   `{"base64":""}`,
		"base64-not-padded":   `{"base64":"/w"}`,
		"base64-loose-bits":   `{"base64":"/x=="}`,
		"base64-line-break":   `{"base64":"/w=\n="}`,
		"unknown-member":      `{"base64":"/w==","x":1}`,
		"number":              `1`,
		"null":                `null`,
		"base64-name-in-caps": `{"BASE64":"/w=="}`,
	} {
		var text canonical.Text
		if err := canonical.Unmarshal([]byte(doc), &text); err == nil {
			t.Errorf("%s: Unmarshal(%s) = %q, want an error: each value has one spelling", name, doc, text)
		}
	}
}

func TestDigest(t *testing.T) {
	a := canonical.Sum("plan", []byte("{}"))
	if b := canonical.Sum("result", []byte("{}")); a == b {
		t.Error("two kinds of thing have one digest")
	}
	if b := canonical.Sum("pla", []byte("n{}")); a == b {
		t.Error("kind and content run together")
	}
	if b := canonical.Sum("plan", []byte("{"), nil, []byte("}")); a != b {
		t.Errorf("in pieces the digest is %s, want %s", b, a)
	}
	if _, err := canonical.ParseDigest(string(a)); err != nil {
		t.Errorf("ParseDigest(%s) = %v", a, err)
	}
	for _, s := range []string{"", "sha256:", string(a[:70]), string(a) + "0", strings.ToUpper(string(a)), "sha1:" + string(a[7:]), "sha256:" + strings.Repeat("g", 64)} {
		if _, err := canonical.ParseDigest(s); err == nil {
			t.Errorf("ParseDigest(%q) succeeds", s)
		}
	}
}

func TestUnmarshalIsStrict(t *testing.T) {
	type doc struct {
		A string `json:"a"`
	}
	for name, text := range map[string]string{
		"unknown-member": `{"a":"x","b":1}`, "another-case": `{"A":"x"}`, "wrong-type": `{"a":1}`, "duplicate": `{"a":"x","a":"y"}`,
		"text-behind": `{"a":"x"}x`,
	} {
		var d doc
		if err := canonical.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s: Unmarshal(%s) succeeds", name, text)
		}
	}
}
