package evidence

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"pgfsm/internal/test/check"
)

// seeds reads a corpus, which must not be empty.
func seeds[T any](tb testing.TB, name string) []T {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	check.NoError(tb, err)
	var list []T
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		tb.Fatalf("%s: %d seeds, %v", name, len(list), err)
	}
	return list
}

// resolve finds the value at a JSON pointer without the code under test: decoded if it is a string, else its literal.
func resolve(tb testing.TB, doc jsontext.Value, pointer string) string {
	tb.Helper()
	if pointer == "" {
		if doc.Kind() != '"' {
			return string(doc)
		}
		var s string
		check.NoError(tb, json.Unmarshal(doc, &s))
		return s
	}
	name, rest, found := strings.Cut(pointer[1:], "/")
	if found {
		rest = "/" + rest
	}
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	if doc.Kind() == '[' {
		var list []jsontext.Value
		i, _ := strconv.Atoi(name)
		if err := json.Unmarshal(doc, &list); err != nil || i >= len(list) {
			tb.Fatalf("there is no element %s", name)
		}
		return resolve(tb, list[i], rest)
	}
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(doc, &members); err != nil || members[name] == nil {
		tb.Fatalf("there is no member %q", name)
	}
	return resolve(tb, members[name], rest)
}

var latinRuns = regexp.MustCompile(`\p{Latin}+`)

// visibleNumbers returns the number words that a reader sees in s.
func visibleNumbers(s string) map[string]bool {
	visible := make(map[string]bool)
	for _, run := range latinRuns.FindAllString(strings.ToLower(fold(s)), -1) {
		if m := meanings[run]; m == numberWord || m == scaleWord {
			visible[run] = true
		}
	}
	return visible
}

var digitRuns = regexp.MustCompile(`[0-9]+`)

func FuzzLock(f *testing.F) {
	for _, s := range seeds[[3]string](f, "lock.json") {
		f.Add(s[0], s[1], s[2])
	}
	for _, c := range summaries(f) {
		if s, err := Parse(c.Bytes()); err == nil {
			f.Add(string(c.PayloadOf()), s.Items[0].Claim, s.Items[0].Evidence)
		}
	}
	for _, tt := range hiddenNumbers {
		f.Add(`"`+between+`"`, tt.claim, between)
	}
	f.Add(`"Rules:\n- Mask emails\n2. 10 rows\n| a \\| b | 10 000 |"`, "Emails.", "Mask emails")
	f.Add(`"It costs\n10\nmillion"`, "It is 10.", "10")
	f.Fuzz(func(t *testing.T, doc, claim, evidence string) {
		located, err := Lock([]byte(doc), Summary{Items: []Item{{Claim: claim, Evidence: evidence}}})
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code == "" || refused.Reason == "" || located != nil {
				t.Fatalf("Lock() = %v, %v, want a reason and nothing located", located, err)
			}
			return
		}
		l := located[0]
		value := resolve(t, jsontext.Value(strings.TrimSpace(doc)), l.At.Pointer)
		if got := value[l.At.Start:l.At.End]; got != evidence || l.Evidence != evidence || l.Claim != claim {
			t.Errorf("the text at %+v is %q, want the evidence %q", l.At, got, evidence)
		}
		there := digitRuns.FindAllString(norm.NFKC.String(evidence), -1)
		for _, run := range digitRuns.FindAllString(norm.NFKC.String(claim), -1) {
			if !slices.Contains(there, run) {
				t.Errorf("the claim %q shows %s, which its evidence %q does not", claim, run, evidence)
			}
		}
		has := visibleNumbers(evidence)
		for show := range visibleNumbers(claim) {
			if !has[show] {
				t.Errorf("the claim %q says %s, which its evidence %q does not", claim, show, evidence)
			}
		}
		if len(value) > windowBytes || len(evidence) == len(value) {
			return
		}
		for _, token := range Tokens(value) {
			if token.Start < l.At.Start && l.At.Start < token.End || token.Start < l.At.End && l.At.End < token.End {
				t.Errorf("the evidence %q cuts the %s %q", evidence, token.Class, token.Text)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, doc := range seeds[string](f, "parse.json") {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		s, err := Parse([]byte(doc))
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		check.NoError(t, err)
		if _, err := Parse(again); err != nil {
			t.Errorf("Parse(%s) = %v, want what was parsed before", again, err)
		}
	})
}
