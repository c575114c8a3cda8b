package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
)

// An exportedEntry is a line of an export that has an entry.
type exportedEntry struct {
	Body   jsontext.Value `json:"body,omitempty"`
	Hash   string         `json:"hash"`
	Header jsontext.Value `json:"header"`
	Index  int64          `json:"index"`
}

// exportedLines are the lines of an export, without the newlines.
type exportedLines struct {
	*testing.T
	lines []string
}

// An exportEdit changes an export.
type exportEdit func(x *exportedLines)

// entry reads a line that has an entry.
func (x *exportedLines) entry(line int) (e exportedEntry, h checkpoint.Header) {
	x.Helper()
	check.NoError(x, json.Unmarshal([]byte(x.lines[line]), &e))
	check.NoError(x, json.Unmarshal(e.Header, &h))
	return e, h
}

// put writes an entry in a line, with the hashes that it needs.
func (x *exportedLines) put(line int, e exportedEntry) {
	x.Helper()
	e.Hash = tlog.RecordHash(e.Header).String()
	text, err := canonical.Marshal(e)
	check.NoError(x, err)
	x.lines[line] = string(text)
}

// find returns the first line that matches a pattern.
func (x *exportedLines) find(pattern string) int {
	x.Helper()
	found := slices.IndexFunc(x.lines, regexp.MustCompile(pattern).MatchString)
	if found < 0 {
		x.Fatalf("no line of the export has %s", pattern)
	}
	return found
}

// replace replaces the first match of a pattern in a text, which must have one.
func (x *exportedLines) replace(text []byte, pattern, with string) []byte {
	x.Helper()
	expression := regexp.MustCompile(pattern)
	found := expression.FindSubmatchIndex(text)
	if found == nil {
		x.Fatalf("%s does not have %s", text, pattern)
	}
	return slices.Concat(text[:found[0]], expression.Expand(nil, []byte(with), text, found), text[found[1]:])
}

// inBody changes the body of the first entry that matches a pattern, and computes its digest and the entry's hash again.
func inBody(of, pattern, with string) exportEdit {
	return func(x *exportedLines) {
		line := x.find(of)
		e, h := x.entry(line)
		e.Body = x.replace(e.Body, pattern, with)
		e.Header = x.replace(e.Header, regexp.QuoteMeta(h.Body.String()), tlog.Hash(sha256.Sum256(e.Body)).String())
		x.put(line, e)
	}
}

// inHeader changes the header of the first entry that matches a pattern, and computes the entry's hash again.
func inHeader(of, pattern, with string) exportEdit {
	return func(x *exportedLines) {
		line := x.find(of)
		e, _ := x.entry(line)
		e.Header = x.replace(e.Header, pattern, with)
		x.put(line, e)
	}
}

// inText changes the first line that matches a pattern, and computes nothing again.
func inText(of, pattern, with string) exportEdit {
	return func(x *exportedLines) {
		line := x.find(of)
		x.lines[line] = string(x.replace([]byte(x.lines[line]), pattern, with))
	}
}

// removed removes the first line that matches a pattern.
func removed(pattern string) exportEdit {
	return func(x *exportedLines) {
		line := x.find(pattern)
		x.lines = slices.Delete(x.lines, line, line+1)
	}
}

// bodyRemoved removes the body of the first entry that matches a pattern.
func bodyRemoved(pattern string) exportEdit {
	return func(x *exportedLines) {
		line := x.find(pattern)
		e, _ := x.entry(line)
		e.Body = nil
		x.put(line, e)
	}
}

// appended adds an entry with one event to the end of the export. It belongs to the run of the line before, unless that is negative.
func (x *exportedLines) appended(before int, class, kind, event string) {
	x.Helper()
	last, _ := x.entry(len(x.lines) - 1)
	var run, prev string
	n := 0
	if before >= 0 {
		e, h := x.entry(before)
		run = string(regexp.MustCompile(`"run":"[^"]*",`).Find(e.Body))
		prev, n = e.Hash, h.N+1
	}
	body := fmt.Appendf(nil, `{"by":"local:eve","events":[%s],%s"salt":"AAAAAAAAAAAAAAAAAAAAAA=="}`, event, run)
	header := fmt.Appendf(nil, `{"at":"2026-11-22T00:00:00.000Z","body":%q,"class":%q,"n":%d,"prev":%q,"types":[%q]}`,
		tlog.Hash(sha256.Sum256(body)), class, n, prev, kind)
	x.lines = append(x.lines, "")
	x.put(len(x.lines)-1, exportedEntry{Body: body, Header: header, Index: last.Index + 1})
}

// prunes adds a prune of some entries, which are all added before its time, with an order that the signer has signed.
func (x *exportedLines) prunes(signer note.Signer, before string, runs int, entries ...ledger.Range) {
	x.Helper()
	order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneRetention, Before: before}
	signed, err := order.Sign(signer)
	check.NoError(x, err)
	x.prunesBy(string(signed), before, runs, entries...)
}

// prunesBy adds a prune, and removes the bodies that may be removed.
func (x *exportedLines) prunesBy(order, before string, runs int, entries ...ledger.Range) {
	x.Helper()
	for i := range x.lines {
		if !strings.Contains(x.lines[i], `"header":`) || strings.Contains(x.lines[i], `"class":"log"`) {
			continue
		}
		e, _ := x.entry(i)
		if slices.ContainsFunc(entries, func(r ledger.Range) bool { return r.First <= e.Index && e.Index <= r.Last }) {
			e.Body = nil
			x.put(i, e)
		}
	}
	ranges, err := canonical.Marshal(entries)
	check.NoError(x, err)
	if order != "" {
		order = `"order":` + string(canonical.AppendText(nil, order)) + `,`
	}
	x.appended(-1, "log", "ledger.pruned", fmt.Sprintf(`{"before":%q,"entries":%s,"kind":"retention",%s"runs":%d,"type":"ledger.pruned"}`, before, ranges, order, runs))
}

// heldRun returns the member with the id of a run that has not ended.
func (x *exportedLines) heldRun() string {
	x.Helper()
	for _, line := range x.lines {
		id := runMember.FindString(line)
		ended := func(other string) bool {
			return strings.Contains(other, id) && strings.Contains(other, `"type":"run.ended"`)
		}
		if strings.Contains(line, `"type":"approval.requested"`) && !slices.ContainsFunc(x.lines, ended) {
			return id
		}
	}
	x.Fatal("no run of the export is held")
	return ""
}

var runMember = regexp.MustCompile(`"run":"[^"]*"`)

// lastOf returns the last line of the first run of which an entry matches a pattern.
func (x *exportedLines) lastOf(pattern string) (last int) {
	x.Helper()
	id := runMember.FindString(x.lines[x.find(pattern)])
	for i, line := range x.lines {
		if strings.Contains(line, id) {
			last = i
		}
	}
	return last
}

// run returns the ranges of the entries of the first run of which an entry matches a pattern.
func (x *exportedLines) run(pattern string) (ranges []ledger.Range) {
	x.Helper()
	id := runMember.FindString(x.lines[x.find(pattern)])
	for i := range x.lines {
		if !strings.Contains(x.lines[i], id) {
			continue
		}
		e, _ := x.entry(i)
		if n := len(ranges); n > 0 && ranges[n-1].Last == e.Index-1 {
			ranges[n-1].Last++
		} else {
			ranges = append(ranges, ledger.Range{First: e.Index, Last: e.Index})
		}
	}
	return ranges
}

// changedExports verifies changed exports. The attacker has computed the hashes of changed entries again.
func (v *secondVerifier) changedExports(whole []byte) {
	v.Helper()
	const created, claimed, token = `"request.created"`, `"type":"run.claimed"`, `"type":"token.created"`
	const started, prunable = `"type":"command.started"`, `"type":"approval.approved"`
	for _, tt := range []struct {
		name string
		edit exportEdit
		err  string
	}{
		{"line-not-canonical", inText(claimed, `,"hash"`, `, "hash"`), "not canonical JSON (record-format.md, R1)"},
		{"unknown-member-of-a-line", inText(claimed, `,"index"`, `,"held":1,"index"`), `the member "held" is unknown`},
		{"entry-missing", removed(claimed), "is missing (record-format.md, R4)"},
		{"body-changed-but-not-its-digest", inText(claimed, `"by":"`, `"by":"x`), "is not the SHA-256 of the body (record-format.md, R2)"},
		{"header-changed-but-not-its-hash", inText(claimed, `"n":2`, `"n":1`), "hash is not the leaf hash of header (record-format.md, R2)"},
		{"blob-changed", inText(`"kind":"blob"`, `tools_listed`, `tools_lister`), "the text is not that of the digest (record-format.md, R2)"},
		{"types-of-other-events", inHeader(claimed, "run.claimed", "tool.result"), "types are not those of the events (record-format.md, R3)"},
		{"types-of-more-events", inHeader(claimed, `\["run.claimed"`, `["run.claimed","tool.result"`), "types are not those of the events"},
		{"class-that-may-be-pruned", inHeader(token, `"class":"log"`, `"class":"session"`), "is not of the class session (record-format.md, R3)"},
		{"class-that-is-unknown", inHeader(token, `"class":"log"`, `"class":"other"`), "is not of the class other"},
		{"run-of-an-entry-that-belongs-to-none", inBody(token, `"salt"`, `"run":"01a21c1b-5e9d-79a6-a2b6-06ebf1cec2d3","salt"`), "the class is not that of the body"},
		{"no-run-of-an-entry-that-belongs-to-one", inBody(claimed, `"run":"[^"]*",`, ""), "the class is not that of the body"},
		{"two-events-without-a-run", inHeader(token, `"token.created"`, `"token.created","token.created"`), "has n or several events"},
		{"unknown-event", inHeader(claimed, "run.claimed", "run.stolen"), "the event run.stolen is unknown"},
		{"unknown-member-of-an-event", inBody(claimed, `"type"`, `"by":"","type"`), `the member "by" is unknown`},
		{"short-salt", inBody(claimed, `"salt":"[^"]*"`, `"salt":"AAAA"`), "salt has not 16 bytes"},
		{"blob-missing", removed(`"kind":"blob"`), "is missing (record-format.md, R8)"},
		{"bundle-missing", removed(`"kind":"bundle"`), "is missing (record-format.md, R8)"},
		{"blob-twice", func(x *exportedLines) {
			line := x.find(`"kind":"blob"`)
			x.lines = slices.Insert(x.lines, line, x.lines[line])
		}, "was written before"},
		{"blob-that-no-entry-refers-to", func(x *exportedLines) {
			x.lines = append(x.lines, fmt.Sprintf(`{"blob":%q,"kind":"blob","text":"1"}`, canonical.Sum("blob", []byte("1"))))
		}, "no entry refers to it"},
		{"body-left-out", bodyRemoved(claimed), "no prune names it (record-format.md, R38)"},
		{"body-of-a-token-left-out", bodyRemoved(token), "no prune removes entries of the class log"},
		{"earlier-than-the-entry-before", inHeader(claimed, `"at":"2026`, `"at":"2025`), "earlier than the entry before (record-format.md, R4)"},
		{"entry-changed-before-another-of-the-run", inBody(prunable, `"key":"`, `"key":"x`), "prev is not the hash of the run's entry before"},
		{"n-too-large", inHeader(claimed, `"n":2`, `"n":3`), "n is 3, but the run has 2 entries before"},
		{"run-without-a-beginning", inHeader(prunable, `"n":1,"prev":"[^"]*"`, `"n":0,"prev":""`), "request.created is the first event of a run"},
		{"run-after-its-end", func(x *exportedLines) {
			x.appended(x.lastOf(`"type":"outcome.delivered"`), "run", "run.claimed", `{"type":"run.claimed"}`)
		}, "its run has ended before"},
		{"run-that-goes-on-in-two-ways", func(x *exportedLines) { x.appended(x.find(claimed), "run", "run.claimed", `{"type":"run.claimed"}`) }, "but the run has"},
		{"gen-that-is-no-generation", inBody(created, `"gen":[0-9]+`, `"gen":0`), "is no earlier generation"},
		{"gen-of-a-later-entry", inBody(created, `"gen":[0-9]+`, `"gen":99`), "is no earlier generation"},
		{"gen-of-another-process", inBody(started, `"by":"`, `"by":"x`), "which is of another process"},
		{"other-version-of-the-events", inBody(started, `"events":1,`, `"events":2,`), "has the version 2; this verifier knows 1"},
		{"step-that-does-not-exist", inBody(created, `"step":1`, `"step":9`), "is not one of the steps"},
		{"time-of-a-step-that-does-not-exist", inBody(`"after_ms":\[`, `"after_ms":\[`, `"after_ms":[1,1,1,1,1,1,1,1,1,1,1,1,`), "after_ms has more times than there are steps"},
		{"times-that-end-with-a-zero", inBody(`"after_ms":\[[0-9]+\]`, `"after_ms":\[[0-9]+\]`, `"after_ms":[0]`), "after_ms ends with a zero"},
		{"age-of-a-listing-that-was-not-kept", inBody(created, `\{"event":"@`, `{"age_s":7,"event":"@`), "the listing was not kept"},
		{"age-of-zero", inBody(created, `\{"event":"@`, `{"age_s":0,"event":"@`), "age_s is zero"},
		{"second-beginning-of-the-log", inBody(`"type":"log.created"`, `"origin":"`, `"origin":"x`), "the checkpoint is of another log (record-format.md, R39)"},
		{"last-entry-changed", func(x *exportedLines) {
			inBody(fmt.Sprintf(`"index":%d}`, strings.Count(strings.Join(x.lines, ""), `,"header":`)-1), `"by":"`, `"by":"x`)(x)
		}, "are not those of the checkpoint"},
		{"last-entry-missing", func(x *exportedLines) { x.lines = x.lines[:len(x.lines)-1] }, "the checkpoint has"},
	} {
		v.changedExport(whole, tt.name, tt.edit, tt.err)
	}
}

// changedExport verifies one changed export against the checkpoint of the whole, with both verifiers.
func (v *secondVerifier) changedExport(whole []byte, name string, edit exportEdit, err string) {
	v.Helper()
	x := &exportedLines{v.T, strings.Split(string(bytes.TrimSuffix(whole, []byte("\n"))), "\n")}
	edit(x)
	changed := []byte(strings.Join(x.lines, "\n") + "\n")
	v.write(name, changed)
	v.refuses("export "+name+" --key log.pub --checkpoint signed", err)

	keys := trusted(v.T, strings.TrimSpace(string(v.read("log.pub"))))
	signed, openErr := checkpoint.Open(v.read("signed"), keys)
	check.NoError(v, openErr)
	_, verifyErr := ledger.VerifyExport(v.Context(), ledgertest.NewStore(v.T), bytes.NewReader(changed),
		ledger.VerifyOptions{Checkpoint: &signed.Checkpoint, Keys: keys.Log})
	if !errors.Is(verifyErr, ledger.ErrTampered) && !errors.Is(verifyErr, ledger.ErrNewer) {
		v.Errorf("%s: VerifyExport() = %v", name, verifyErr)
	}
}

// forgedPrunes verifies exports with prunes that a user who can write the database has added. A checkpoint from before covers none of them.
func (v *secondVerifier) forgedPrunes(whole []byte, signer note.Signer) {
	v.Helper()
	const late = "2026-11-22T00:00:00.000Z"
	const approved, token = `"type":"approval.approved"`, `"type":"token.created"`
	first := func(x *exportedLines, pattern string) ledger.Range {
		e, _ := x.entry(x.find(pattern))
		return ledger.Range{First: e.Index, Last: e.Index}
	}
	for _, tt := range []struct {
		name string
		edit exportEdit
		err  string
	}{
		{"nothing", func(x *exportedLines) { x.prunes(signer, late, 0) }, "it removes nothing (record-format.md, R30)"},
		{"entries-after-it", func(x *exportedLines) { x.prunes(signer, late, 0, ledger.Range{First: 9999, Last: 9999}) }, "is not the next range of entries before"},
		{"ranges-out-of-order", func(x *exportedLines) {
			r := first(x, approved)
			x.prunes(signer, late, 0, r, r)
		}, "is not the next range"},
		{"pruned-twice", func(x *exportedLines) {
			removed := x.run(approved)
			x.prunes(signer, late, 1, removed...)
			x.prunes(signer, late, 1, removed...)
		}, "was pruned before (record-format.md, R30)"},
		{"token", func(x *exportedLines) { x.prunes(signer, late, 0, first(x, token)) }, "is of the class log (record-format.md, R31)"},
		{"entries-that-are-not-older", func(x *exportedLines) { x.prunes(signer, "2026-11-21T09:00:00.000Z", 1, x.run(approved)...) }, "was added at"},
		{"before-the-future", func(x *exportedLines) { x.prunes(signer, "2027-11-21T09:00:00.000Z", 1, x.run(approved)...) }, "later than the prune"},
		{"held-run", func(x *exportedLines) { x.prunes(signer, late, 1, x.run(x.heldRun())...) }, "has not ended (record-format.md, R32)"},
		{"an-approval-alone", func(x *exportedLines) { x.prunes(signer, late, 0, first(x, approved)) }, "is of a run that was pruned, and is not named"},
		{"no-order", func(x *exportedLines) { x.prunesBy("", late, 1, x.run(approved)...) }, "has no order (record-format.md, R36)"},
		{"an-order-of-another-key", func(x *exportedLines) {
			private, _, err := checkpoint.NewKey(signer.Name())
			check.NoError(x, err)
			other, err := note.NewSigner(private)
			check.NoError(x, err)
			x.prunes(other, late, 1, x.run(approved)...)
		}, "no key of the log has signed its order (record-format.md, R37)"},
		{"an-order-of-another-time", func(x *exportedLines) {
			order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneRetention, Before: "2026-11-21T09:00:00.000Z"}
			signed, err := order.Sign(signer)
			check.NoError(x, err)
			x.prunesBy(string(signed), late, 1, x.run(approved)...)
		}, "its order has another time (record-format.md, R37)"},
		{"an-order-with-a-wrong-signature-beside-a-right-one", func(x *exportedLines) {
			order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneRetention, Before: late}
			signed, err := order.Sign(signer)
			check.NoError(x, err)
			order.Before = "2026-11-21T09:00:00.000Z"
			other, err := order.Sign(signer)
			check.NoError(x, err)
			_, signature, _ := strings.Cut(string(other), "\n\n")
			x.prunesBy(string(signed)+signature, late, 1, x.run(approved)...)
		}, "(record-format.md, R37)"},
		{"parts-of-two-runs", func(x *exportedLines) {
			ended := x.run(approved)
			x.prunes(signer, late, 1, append(x.run(x.heldRun())[:1], ended[len(ended)-1])...)
		}, "(record-format.md, R32)"},
		{"a-key-of-another-log", func(x *exportedLines) {
			_, other, err := checkpoint.NewKey("other.example/log")
			check.NoError(x, err)
			x.appended(-1, "log", "key.added", fmt.Sprintf(`{"key":%q,"type":"key.added"}`, other))
		}, "the key is of another log"},
		{"a-key-that-was-not-added", func(x *exportedLines) {
			_, other, err := checkpoint.NewKey(signer.Name())
			check.NoError(x, err)
			x.appended(-1, "log", "key.removed", fmt.Sprintf(`{"key":%q,"type":"key.removed"}`, other))
		}, "the key was not one of the log"},
		{"miscounted", func(x *exportedLines) { x.prunes(signer, late, 2, x.run(approved)...) }, "runs is 2, but 1 runs were pruned (record-format.md, R33)"},
	} {
		v.changedExport(whole, "prune-of-"+tt.name, tt.edit, tt.err)
	}
}
