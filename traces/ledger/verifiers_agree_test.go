package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
)

// sampled is one in how many changes the test tries, unless PGFSM_SOAK is set.
const sampled = 13

// TestVerifiersAgree changes every value of every entry of a log in several ways. Who changes it has computed the hashes again, and the
// links of the run. With a checkpoint, both verifiers refuse every change; without one, they give the same answer.
func TestVerifiersAgree(t *testing.T) {
	v := newSecondVerifier(t)
	d := newFixture(t)
	signer, vkey := d.newKey()
	d.passes(1)
	ended := d.runs()[0]
	held := d.called(ledger.Anonymous)
	d.delivers(held, ledger.ByRepeat)
	d.passing()
	fromEverywhere(t, d)
	d.token("olga", ledger.RoleAuditor, "")
	d.connects(t)
	d.block("eve")
	d.Clock.Add(48 * 3600e9)
	order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(ended)}}
	if done, err := d.Prune(t.Context(), ledger.PruneRequest{Order: ordered(t, signer, order), Reason: "mistake"}, root); err != nil || done.Runs != 1 {
		t.Fatalf("Prune() = %+v, %v", done, err)
	}
	v.write("log.pub", []byte(vkey+"\n"))
	signed := d.signed(signer)
	v.write("signed", signed)
	keys := trusted(t, vkey)
	opened, err := checkpoint.Open(signed, keys)
	check.NoError(t, err)
	var whole bytes.Buffer
	x := ledger.Exporter{To: &whole}
	d.Inspect(x.Export)

	lines := strings.Split(strings.TrimSuffix(whole.String(), "\n"), "\n")
	every, tried, refused, decidedOtherwise := sampled, 0, 0, 0
	if os.Getenv("PGFSM_SOAK") != "" {
		every = 1
	}
	n := 0
	for i := range lines {
		for _, c := range changesOf(t, lines, i) {
			if n++; n%every != 0 {
				continue
			}
			tried++
			export := []byte(strings.Join(c.lines, "\n") + "\n")
			v.write("changed", export)
			for _, o := range []ledger.VerifyOptions{{Keys: keys.Log}, {Keys: keys.Log, Checkpoint: &opened.Checkpoint}} {
				command := "export changed --key log.pub"
				if o.Checkpoint != nil {
					command += " --checkpoint signed"
				}
				_, err := ledger.VerifyExport(t.Context(), ledgertest.NewStore(t), bytes.NewReader(export), o)
				said, intact := v.verify(command)
				accepted := err == nil
				if err != nil && !errors.Is(err, ledger.ErrTampered) && !errors.Is(err, ledger.ErrNewer) {
					t.Errorf("line %d, %s: VerifyExport() = %v", i+1, c.name, err)
				}
				if accepted != intact || o.Checkpoint != nil && accepted {
					t.Errorf("line %d, %s, with a checkpoint %t: VerifyExport() = %v; the second verifier says %s", i+1, c.name, o.Checkpoint != nil, err, said)
				}
				switch {
				case o.Checkpoint == nil && !accepted:
					refused++
				case o.Checkpoint == nil && d.differs(t, export, keys):
					decidedOtherwise++
				}
			}
		}
	}
	t.Logf("%d changes: without a checkpoint, the rules refuse %d, and another execution differs for %d more; with one, all are refused", tried,
		refused, decidedOtherwise)
}

// differs reports whether another execution of the runs of an export has another result.
func (d *fixture) differs(t *testing.T, export []byte, keys checkpoint.Keys) bool {
	report, err := ledger.VerifyExport(t.Context(), ledgertest.NewStore(t), bytes.NewReader(export),
		ledger.VerifyOptions{Keys: keys.Log, Replayer: d.replayer(nil)})
	return err != nil || !report.Deep.OK()
}

// A changedLog is a log with one change.
type changedLog struct {
	name  string
	lines []string
}

// changesOf returns the changes of one line.
func changesOf(t *testing.T, lines []string, at int) (all []changedLog) {
	t.Helper()
	x := &exportedLines{t, lines}
	if !strings.Contains(lines[at], `"header":`) {
		return nil
	}
	whole, _ := x.entry(at)
	for _, part := range []string{"header", "body"} {
		text := whole.Header
		if part == "body" {
			text = whole.Body
		}
		if text == nil {
			continue
		}
		for _, edited := range editsOf(text) {
			e := whole
			if part == "header" {
				e.Header = edited.value
			} else {
				e.Body = edited.value
				_, h := x.entry(at)
				digest := tlog.Hash(sha256.Sum256(e.Body)).String()
				e.Header = jsontext.Value(strings.Replace(string(e.Header), h.Body.String(), digest, 1))
			}
			all = append(all, changedLog{part + " " + edited.name, relinked(t, lines, at, e)})
		}
	}
	return all
}

// relinked puts an entry in its place, and corrects the links of the entries that follow it in its run.
func relinked(t *testing.T, lines []string, at int, e exportedEntry) []string {
	t.Helper()
	x := &exportedLines{t, slices.Clone(lines)}
	read := func(line int) (e exportedEntry) {
		check.NoError(t, json.Unmarshal([]byte(x.lines[line]), &e))
		return e
	}
	from := read(at).Hash
	x.put(at, e)
	to := read(at).Hash
	for i := at + 1; i < len(x.lines); i++ {
		if !strings.Contains(x.lines[i], `"prev":"`+from+`"`) {
			continue
		}
		next := read(i)
		next.Header = jsontext.Value(strings.Replace(string(next.Header), from, to, 1))
		from = next.Hash
		x.put(i, next)
		to = read(i).Hash
	}
	return x.lines
}

// An editedValue is a value with one change.
type editedValue struct {
	name  string
	value jsontext.Value
}

// editsOf changes each value in a JSON text: it is left out, or replaced by one of another form.
func editsOf(text jsontext.Value) (all []editedValue) {
	switch text.Kind() {
	case '{':
		members := membersOf(text)
		for i, m := range members {
			rest := slices.Delete(slices.Clone(members), i, i+1)
			all = append(all, editedValue{m.name + " left out", objectOf(rest)})
			for _, inner := range editsOf(m.value) {
				with := slices.Clone(members)
				with[i].value = inner.value
				all = append(all, editedValue{m.name + ": " + inner.name, objectOf(with)})
			}
		}
	case '[':
		elements := elementsOf(text)
		for i, e := range elements {
			all = append(all, editedValue{fmt.Sprint(i, " left out"), listOf(slices.Delete(slices.Clone(elements), i, i+1))})
			all = append(all, editedValue{fmt.Sprint(i, " twice"), listOf(slices.Insert(slices.Clone(elements), i, e))})
			for _, inner := range editsOf(e) {
				with := slices.Clone(elements)
				with[i] = inner.value
				all = append(all, editedValue{fmt.Sprint(i, ": ", inner.name), listOf(with)})
			}
		}
	case '"':
		s, _ := canonical.Unquote(text)
		for _, other := range []string{"", s + "x", flipped(s)} {
			if other != s {
				all = append(all, editedValue{fmt.Sprintf("%.20q", other), canonical.AppendText(nil, other)})
			}
		}
		all = append(all, editedValue{"7", jsontext.Value("7")})
	case '0':
		for _, other := range []string{"0", "1", "9", "-1", "1.5", `"1"`} {
			if other != string(text) {
				all = append(all, editedValue{other, jsontext.Value(other)})
			}
		}
	default:
		all = append(all, editedValue{"true", jsontext.Value("true")}, editedValue{"null", jsontext.Value("null")}, editedValue{"false", jsontext.Value("false")})
		all = slices.DeleteFunc(all, func(e editedValue) bool { return bytes.Equal(e.value, text) })
	}
	return all
}

// flipped changes one character in the middle to another one of the same kind.
func flipped(s string) string {
	for i := len(s) / 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c < '9', c >= 'a' && c < 'f':
			return s[:i] + string(c+1) + s[i+1:]
		case c == '9' || c == 'f':
			return s[:i] + string(c-1) + s[i+1:]
		}
	}
	return s
}

type jsonMember struct {
	name  string
	value jsontext.Value
}

func membersOf(text jsontext.Value) (all []jsonMember) {
	for name, value := range canonical.Members(text) {
		all = append(all, jsonMember{name, slices.Clone(value)})
	}
	return all
}

func objectOf(members []jsonMember) jsontext.Value {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(canonical.AppendText(b, m.name), ':'), m.value...)
	}
	return append(b, '}')
}

func elementsOf(text jsontext.Value) (all []jsontext.Value) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	_, _ = d.ReadToken()
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			break
		}
		all = append(all, v.Clone())
	}
	return all
}

func listOf(elements []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}
