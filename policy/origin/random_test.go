package origin_test

import (
	stdjson "encoding/json"
	"math/big"
	"math/rand/v2"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
)

// words are what random prompts, results and values are made of; separators stand between them.
var (
	words = []string{"bob@x.com", "bob@X.com", "Bob <bob@x.com>", "x.com", "https://x.com/", "HTTPS://x.com", "https://x.com/a/b", "Alice",
		"alice", "general", "#general", "@general", "17", "1234", "1,234.50", "1234.5", "$50", "50", "50 EUR", "DE89 3704 0044 0532 0130 00",
		"DE89370400440532013000", "+49 30 1234567", "+49301234567", "2026-11-27", "27 November 2026", "Nov 27, 2026", "id", "to", "é", "e\u0301", "ﬁle", "ｂｏｂ"}
	separators = []string{" ", " ", " ", "\n", "", ".", ". ", ",", ", ", ":", "/", "-", "_", "+", "@", "#", "?", "&", "'", "\u200b", "\u00a0", "(", ")", "<", "```", "\n> ", "\n\n"}
)

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString(separators[r.IntN(len(separators))])
	}
	return b.String()
}

// TestRandomFound checks evidence with a finder of its own: what is found must be there.
func TestRandomFound(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 5000
	}
	r := rand.New(rand.NewPCG(39, 1))
	seen := map[string]int{}
	for range rounds {
		prompt, scalar, other := randomText(r, 1+r.IntN(6)), randomText(r, 1), randomText(r, 1)
		value := words[r.IntN(len(words))]
		if r.IntN(2) == 0 {
			prompt = "Look." // so that results decide
		}
		if r.IntN(3) == 0 {
			scalar = words[r.IntN(len(words))]
		}
		if r.IntN(4) == 0 {
			from, to := r.IntN(len(prompt)), r.IntN(len(prompt))
			value = strings.ToValidUTF8(prompt[min(from, to):max(from, to)], "")
		}
		role := []string{"target", "amount"}[r.IntN(2)]
		label := origin.ToolLabel{Server: "book", Tool: "list", Trusted: []string{"/a/*"}}
		roles := origin.RoleLabel{Server: "mail", Tool: "send", Target: []string{"to"}}
		if role == "amount" {
			roles = origin.RoleLabel{Server: "mail", Tool: "send", Amount: []string{"to"}}
		}
		rules, err := origin.Compile(origin.Labels{Tools: []origin.ToolLabel{label}, Roles: []origin.RoleLabel{roles}})
		if err != nil {
			t.Fatal(err)
		}
		session := &origin.Session{
			Prompts: []origin.Prompt{{Entry: 7, Source: "user", Text: prompt}},
			Results: []origin.Result{
				{Run: "0", Call: 1, Entry: 2, Server: "book", Tool: "add"},
				{Run: "1", Call: 3, Entry: 4, Server: "book", Tool: "list",
					Value: canonical.MustMarshal(map[string][]string{"a": {other, scalar}, "b": {value}})},
			},
		}
		session.Sent = func() ([]origin.Sent, string) {
			return []origin.Sent{origin.NewSent(1, canonical.MustMarshal(map[string]string{"q": other}), nil), origin.NewSent(3, []byte("{}"), nil)}, ""
		}
		args := canonical.MustMarshal(map[string]string{"to": value})
		leaves := rules.Find(session, "mail", "send", args, nil)
		if len(leaves) != 1 {
			t.Fatalf("got %d leaves, want 1", len(leaves))
		}
		leaf := leaves[0]
		seen[leaf.Origin+"/"+leaf.Form]++
		switch leaf.Origin {
		case origin.Request:
			if why := checkRequest(prompt, value, leaf); why != "" {
				t.Fatalf("%q in %q: %s: %+v", value, prompt, why, leaf)
			}
		case origin.Trusted:
			found := placeIn(t, session.Results[1].Value, leaf.Place)
			if !strings.HasPrefix(leaf.Place, "/a/") || !equalIn(leaf.Form, value, found) || leaf.Source != "1" {
				t.Fatalf("%q is not %q: %+v", value, found, leaf)
			}
			if strings.Contains(other, value) && utf8.RuneCountInString(value) >= 4 {
				t.Fatalf("%q was the argument %q: %+v", value, other, leaf)
			}
		case origin.None:
			if value == scalar && !strings.Contains(squeezed(other), squeezed(value)) && value != "" && squeezed(value) != "" && !equalIn(origin.FormDate, value, other) {
				t.Fatalf("%q is a trusted scalar beside %q and is not found", value, other)
			}
		}
	}
	for _, kind := range []string{"request/", "trusted/", "none/", "request/address", "request/compact", "request/amount", "request/url",
		"request/date", "request/handle", "trusted/address", "trusted/compact", "trusted/amount", "trusted/url", "trusted/date", "trusted/handle"} {
		if seen[kind] < max(1, rounds/10000) {
			t.Errorf("%s came up %d times: the test is blind to it", kind, seen[kind])
		}
	}
}

// checkRequest says what is wrong with the evidence of a request, or nothing.
func checkRequest(prompt, value string, leaf origin.Leaf) string {
	if leaf.Source != "7" || leaf.Start < 0 || leaf.End > len(prompt) || leaf.Start >= leaf.End {
		return "bad evidence"
	}
	written := clean(prompt[leaf.Start:leaf.End])
	if !equalIn(leaf.Form, value, written) {
		return "it is not what is written: " + written
	}
	before, behind := []rune(clean("x "+prompt[:leaf.Start]+"|")), []rune(clean("|"+prompt[leaf.End:]+" x"))
	before, behind = before[:len(before)-1], behind[1:]
	for _, side := range []rune{before[len(before)-1], behind[0]} {
		if unicode.IsLetter(side) || unicode.IsDigit(side) || strings.ContainsRune("_@-+/", side) {
			return "there is no boundary at " + string(side)
		}
	}
	if strings.ContainsRune(".:", behind[0]) && (unicode.IsLetter(behind[1]) || unicode.IsDigit(behind[1])) {
		return "it goes on behind a dot"
	}
	if strings.ContainsRune(".:", before[len(before)-1]) && unicode.IsLetter([]rune(written)[0]) {
		return "it begins behind a dot"
	}
	if n := utf8.RuneCountInString(written); n < 4 && leaf.Form != origin.FormAmount {
		tail := strings.ToLower(strings.TrimRight(string(before), " :=\"'(#"))
		if !strings.HasSuffix(tail, "to") && !strings.HasSuffix(tail, "id") && !strings.HasSuffix(strings.TrimRight(string(before), " "), "#") {
			return "it is short"
		}
	}
	if strings.Count(prompt[:leaf.Start], "```")%2 == 1 {
		return "it is fenced"
	}
	return ""
}

// clean folds in a way of its own: it drops, normalizes and joins fields.
func clean(s string) string {
	for range 3 {
		s = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && !unicode.IsSpace(r) {
				return -1
			}
			return r
		}, norm.NFKC.String(s))
	}
	return strings.Join(strings.Fields(s), " ")
}

func squeezed(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, clean(s)))
}

// equalIn reports whether two texts are equal in a form, judged by libraries.
func equalIn(form, a, b string) bool {
	switch form {
	case "":
		return a == b || strings.ContainsAny(a, "@:") && strings.EqualFold(a, b)
	case origin.FormAddress:
		first, err := mail.ParseAddress(a)
		second, err2 := mail.ParseAddress(b)
		return err == nil && err2 == nil && strings.EqualFold(first.Address, second.Address)
	case origin.FormCompact:
		return strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", "")
	case origin.FormAmount:
		first, ok := number(a)
		second, ok2 := number(b)
		return ok && ok2 && first.Cmp(second) == 0
	case origin.FormURL:
		first, err := url.Parse(a)
		second, err2 := url.Parse(b)
		return err == nil && err2 == nil && first.Scheme == second.Scheme && strings.EqualFold(first.Host, second.Host) &&
			strings.TrimSuffix(first.Path, "/") == strings.TrimSuffix(second.Path, "/") && first.RawQuery == second.RawQuery
	case origin.FormDate:
		first, second := date(a), date(b)
		return first != "" && first == second
	case origin.FormHandle:
		return a != b && strings.TrimLeft(a, "#@") == strings.TrimLeft(b, "#@")
	}
	return false
}

func number(s string) (*big.Rat, bool) {
	s = strings.NewReplacer(",", "", "$", "", " EUR", "", "EUR", "").Replace(s)
	return new(big.Rat).SetString(s)
}

func date(s string) string {
	for _, layout := range []string{"2006-01-02", "2 January 2006", "Jan 2, 2006", "2 Jan 2006"} {
		if d, err := time.Parse(layout, s); err == nil {
			return d.Format(time.DateOnly)
		}
	}
	return ""
}

// placeIn returns the text at a JSON pointer.
func placeIn(t *testing.T, doc []byte, pointer string) string {
	t.Helper()
	var node any
	if err := stdjson.Unmarshal(doc, &node); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(pointer, "/")[1:] {
		switch n := node.(type) {
		case map[string]any:
			node = n[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(n) {
				t.Fatalf("%s has no %s", doc, pointer)
			}
			node = n[i]
		}
	}
	text, ok := node.(string)
	if !ok {
		t.Fatalf("%s has no text at %s", doc, pointer)
	}
	return text
}

// TestRandomSame looks twice with the same rules, and with a session that is a copy.
func TestRandomSame(t *testing.T) {
	for _, pair := range readPairs(t) {
		for i := range pair {
			if first, second := pair[i].find(t), pair[i].find(t); !slices.Equal(first, second) {
				t.Errorf("%s: got %+v, then %+v", pair[i].Name, first, second)
			}
		}
	}
}
