package secret

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

// token has every kind of character that some encoding changes.
const token = "tok\"en/\\\t<é😀>-4711"

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		name         string
		values, want []string
	}{
		{"none", nil, nil},
		{"whole-and-credential-longest-first", []string{"Bearer abcdefgh", "ghijklmnop"},
			[]string{"Bearer abcdefgh", "ghijklmnop", "abcdefgh"}},
		{"at-the-bound-and-one-below", []string{"12345678", "1234567"}, []string{"12345678"}},
		{"credential-at-the-bound-and-one-below", []string{"Key 12345678", "Key 1234567"},
			[]string{"Key 12345678", "Key 1234567", "12345678"}},
		{"white-space-around-it", []string{" abcdefgh\t", "Bearer  ijklmnop"},
			[]string{"Bearer  ijklmnop", " abcdefgh\t", "abcdefgh", "ijklmnop"}},
		{"what-the-mask-shows", []string{"masked by", Mask, quotedMask, "by pgfsm]!"}, []string{"by pgfsm]!"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Words(tt.values)); d != "" {
				t.Errorf("Words(%q) (-want +got):\n%s", tt.values, d)
			}
		})
	}
}

func TestMasker(t *testing.T) {
	m := New([]string{token, "Bearer secret-1", "overlap-ab", "ab-overlap", "1234567890", "nab-secret", "prefix-long-er",
		"prefix-long", "x-prefix", "whole-secret-1-end"})
	for _, tt := range []struct{ name, give, want string }{
		{"empty", "", ""},
		{"none", `plain "\u0041\n" \`, `plain "\u0041\n" \`},
		{"as-it-is", "a" + token + "b", "a" + Mask + "b"},
		{"side-by-side", "secret-1secret-1", Mask + Mask},
		{"two-that-overlap", "-overlap-ab-overlap-", "-" + Mask + "-"},
		{"one-in-another", "prefix-long-er prefix-long-e", Mask + " " + Mask + "-e"},
		{"begins-inside-what-almost-was", "x-prefix-long", Mask},
		{"escaped-in-json", `{"a":"tok\"en\/\\\t<\u00e9\uD83D\ude00>-4711"}`, `{"a":"` + Mask + `"}`},
		{"escaped-in-part", `{"a":"x\u0073ecret-1y"}`, `{"a":"x` + Mask + `y"}`},
		{"quoted-by-go", fmt.Sprintf("bad %q and %+q", token, token), `bad "` + Mask + `" and "` + Mask + `"`},
		{"bytes-and-long-escapes", `\x73ecret\U0000002d1, tok\"en/\\\t<\xc3\xa9\U0001f600>-4711`, Mask + ", " + Mask},
		{"not-strict-json", `x {"a":"\u0073ecret-1"} y`, `x {"a":"` + Mask + `"} y`},
		{"json-in-json", `{"a":"{\"b\":\"\\u0073ecret-1\\n\"}"}`, `{"a":"{\"b\":\"` + Mask + `\\n\"}"}`},
		{"half-an-escape-is-none", `\u007 \uZZZZ \x7 \U0011ffff \q secret-1`, `\u007 \uZZZZ \x7 \U0011ffff \q ` + Mask},
		{"backslash-before-it", `\secret-1 \\secret-1`, `\` + Mask + ` \\` + Mask},
		{"begins-inside-an-escape", `"\nab-secret"`, `"` + Mask + `"`},
		{"a-number", `{"n": 1234567890 ,"m":12345678901}`, `{"n": "` + Mask + `" ,"m":"` + Mask + `"}`},
		{"in-a-name", `{"secret-1":1}`, `{"` + Mask + `":1}`},
		{"the-whole-document", ` 1234567890 `, ` "` + Mask + `" `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := m.String(tt.give); got != tt.want {
				t.Errorf("String(%s) = %s, want %s", tt.give, got, tt.want)
			}
			give := []byte(tt.give)
			if got := string(m.Bytes(give)); got != tt.want || string(give) != tt.give {
				t.Errorf("Bytes(%s) = %s, want %s; it leaves %s", tt.give, got, tt.want, give)
			}
		})
	}
}

// Secrets may consist of the marks between the values of a document.
func TestMaskerKeepsJSON(t *testing.T) {
	m := New([]string{`"b":["x",`, "          ", `"name-of-it`, `"],"y":"`, `the-end"`})
	for _, tt := range []struct{ name, give, want string }{
		{"over-marks", `{"a":{"b":["x",1],"c":2}}`, `{"a":"[masked by pgfsm]"}`},
		{"with-its-quote", `{"name-of-it":1}`, `{"[masked by pgfsm]":1}`},
		{"with-its-last-quote", `["the-end"]`, `["[masked by pgfsm]"]`},
		{"between-values", `[1,          2]`, `"[masked by pgfsm]"`},
		{"around-all", `          [1]`, `"[masked by pgfsm]"`},
		{"out-of-a-list", `{"z":["q"],"y":""}`, `"[masked by pgfsm]"`},
		{"in-a-string", `["\"],\"y\":\""]`, `["[masked by pgfsm]"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := m.String(tt.give); got != tt.want {
				t.Errorf("String(%s) = %s, want %s", tt.give, got, tt.want)
			}
		})
	}
}

func TestMaskerLevels(t *testing.T) {
	m := New([]string{token})
	text := token
	for level := range 8 + 2 {
		want := level <= 8
		if got := m.String("<" + text + ">"); (got == "<"+Mask+">") != want || !want && got != "<"+text+">" {
			t.Errorf("level %d: masked: %t, want %t", level, got == "<"+Mask+">", want)
		}
		quoted, err := jsontext.AppendQuote(nil, text)
		check.NoError(t, err)
		text = string(quoted[1 : len(quoted)-1])
	}
}

// A mask and the text around it can be a secret.
func TestMaskerRounds(t *testing.T) {
	values := []string{"secret-1", "pgfsm]-tail", "pgfsm][masked", "ked by pgfsm]k", "sm]ked b"}
	for i := range maxRounds + 1 {
		values = append(values, fmt.Sprintf("pgfsm]-%d", i))
	}
	m := New(values)
	for _, tt := range []struct{ give, want string }{
		{"x secret-1-tail y", "x [masked by " + Mask + " y"},
		{"secret-1secret-1", "[masked by " + Mask + " by pgfsm]"},
		{`["secret-1-tail"]`, `["[masked by ` + Mask + `"]`},
		{"x secret-1-0-1-2", "x [masked by [masked by [masked by " + Mask},
		{"x secret-1-0-1-2-3", Mask},
		{`["secret-1-0-1-2-3"]`, quotedMask},
	} {
		if got := m.String(tt.give); got != tt.want {
			t.Errorf("String(%s) = %s, want %s", tt.give, got, tt.want)
		}
	}
}

func TestMaskerWithoutSecrets(t *testing.T) {
	const text = `secret-1 \u0073ecret-1`
	var none *Masker
	short := New([]string{"1234567", ""})
	for name, m := range map[string]*Masker{"nil": none, "zero": {}, "empty": New(nil), "too-short": short} {
		if got := m.String(text) + string(m.Bytes([]byte(text))); got != text+text {
			t.Errorf("%s: %s, want the text as it was", name, got)
		}
	}
}

func TestMaskerTakesSecretsLater(t *testing.T) {
	const text = "first-token second-token third-token"
	m := New([]string{"third-token"})
	for _, tt := range []struct {
		name   string
		owner  string
		values []string
		want   string
	}{
		{"one", "a", []string{"first-token"}, Mask + " second-token " + Mask},
		{"of-another-owner", "b", []string{"second-token"}, Mask + " " + Mask + " " + Mask},
		{"replaced-by-its-owner", "a", []string{"another-token"}, "first-token " + Mask + " " + Mask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m.Put(tt.owner, tt.values); m.String(text) != tt.want {
				t.Errorf("String(%q) = %q, want %q", text, m.String(text), tt.want)
			}
		})
	}
}

// Texts that were made to be slow take memory and time in proportion to their length. The test counts the memory.
func TestMaskerIsLinear(t *testing.T) {
	const size = 1 << 20
	long := ""
	for i := range 10_000 {
		long += fmt.Sprint(i)
	}
	m := New([]string{long, "secret-1"})
	for name, part := range map[string]string{
		"almost-always": long[:len(long)-1], "escapes": `\n`, "backslashes": `\`, "escaped-characters": `\u0061`, "many-hits": `secret-1`,
		"many-escaped-hits": `\u0073ecret-1`, "names": `"secret-1":`,
	} {
		text := []byte("[" + strings.Repeat(part, size/len(part)))
		var out []byte
		before := allocated()
		out = m.Bytes(text)
		if n := allocated() - before; n > 32*size {
			t.Errorf("%s: %d bytes are allocated for a text of %d", name, n, size)
		}
		if m.words.Load().deepestLevel(out) >= 0 {
			t.Errorf("%s: a secret is left", name)
		}
	}
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
