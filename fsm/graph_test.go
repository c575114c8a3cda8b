package fsm_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/fsm"
	"pgfsm/internal/test/golden"
)

// proofs prints what Prove says, as a person would read it.
func proofs(s *fsm.Spec) []byte {
	var b bytes.Buffer
	for _, p := range fsm.Prove(s) {
		sign := "holds"
		if !p.Holds {
			sign = "FAILS"
		}
		fmt.Fprintf(&b, "%s %s: %s\n    %s\n", sign, p.ID, p.Sentence, p.Witness)
	}
	return b.Bytes()
}

// broken is a table with everything wrong, for what can only be seen then.
func broken() *fsm.Spec {
	s := realistic().Spec()
	s.Places = append(s.Places, fsm.Place{State: "idle", Established: "nothing"}, s.Places[2])
	s.Rows = append(s.Rows,
		fsm.SpecRow{From: "approved", On: "hold", To: "pending"},
		fsm.SpecRow{From: "validated", On: "assess", Guard: "none", GuardWhy: "None.", To: "assessed", Why: "A short cut."},
		fsm.SpecRow{From: "pending", On: "permit", To: "permitted"},
		fsm.SpecRow{From: "answered", On: "dispatch", To: "dispatched"},
		fsm.SpecRow{From: "typed", On: "dream", To: "dreamt"})
	s.Claims.Exits = append(s.Claims.Exits, fsm.Exits{})
	return s
}

// hostile is a machine whose every text tries to break out of its picture.
func hostile() *fsm.Spec {
	evil := "\"</title><script>alert(1)</script>\\\n%%{init}%% ]]>&amp;;\u202e\x00\xff--> x: y"
	return &fsm.Spec{Name: evil,
		Places: []fsm.Place{
			{State: fsm.State("a" + evil), Established: evil + strings.Repeat(" word", 99)},
			{State: "end", Established: strings.Repeat("x", 300)},
			{State: fsm.State("b" + evil), Established: "漢字 " + strings.Repeat("漢", 60), Terminal: true}},
		Rows: []fsm.SpecRow{
			{From: fsm.State("a" + evil), On: "go", Guard: evil, GuardWhy: evil, To: "end", Why: evil},
			{From: "end", On: fsm.Trigger(evil), To: fsm.State("b" + evil), Why: evil},
			{From: "end", On: "nowhere", To: fsm.State(evil), Why: evil}}}
}

type artefact struct {
	name string
	make func() []byte
}

func artefacts() []artefact {
	s := realistic().Spec()
	all := []artefact{
		{"report.txt", func() []byte { return fsm.Report(s) }},
		{"report-broken.txt", func() []byte { return fsm.Report(broken()) }},
		{"proofs.txt", func() []byte { return proofs(s) }},
		{"proofs-broken.txt", func() []byte { return proofs(broken()) }},
	}
	ways := []struct {
		name  string
		spec  *fsm.Spec
		marks fsm.Marks
	}{
		{"whole", s, nil}, {"approved", s, byApproval()}, {"blocked", s, byBlock()},
		{"strange", s, append(byBlock(), fsm.Mark{From: "blocked", On: "retry", To: "received"})},
		{"broken", broken(), nil}, {"hostile", hostile(), nil}, {"empty", &fsm.Spec{}, nil},
	}
	for _, w := range ways {
		all = append(all,
			artefact{w.name + ".svg", func() []byte { return fsm.SVG(w.spec, w.marks) }},
			artefact{w.name + ".dot", func() []byte { return fsm.DOT(w.spec, w.marks) }},
			artefact{w.name + ".mmd", func() []byte { return fsm.Mermaid(w.spec, w.marks) }},
			artefact{w.name + ".json", func() []byte { return fsm.JSON(w.spec, w.marks) }})
	}
	return all
}

func TestArtefactsAreGolden(t *testing.T) {
	for _, a := range artefacts() {
		t.Run(a.name, func(t *testing.T) { golden.File(t, filepath.Join("testdata", a.name), a.make()) })
	}
}

func TestArtefactsAreTheSameEveryTime(t *testing.T) {
	for _, a := range artefacts() {
		first := a.make()
		for range 50 {
			if next := a.make(); !bytes.Equal(first, next) {
				t.Errorf("%s changes from one call to the next", a.name)
				break
			}
		}
	}
}

func TestEveryProofHolds(t *testing.T) {
	for _, p := range fsm.Prove(realistic().Spec()) {
		if !p.Holds || p.Sentence == "" || p.Witness == "" {
			t.Errorf("Prove: %s holds = %v, sentence %q, witness %q, want all", p.ID, p.Holds, p.Sentence, p.Witness)
		}
	}
}

func TestProofIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range fsm.Prove(realistic().Spec()) {
		if seen[p.ID] {
			t.Errorf("Prove gives %s twice", p.ID)
		}
		seen[p.ID] = true
	}
}

func TestSpecJSONRoundTrips(t *testing.T) {
	want := realistic().Spec()
	doc, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(fsm.Spec)
	if err := json.Unmarshal(doc, got, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Spec through JSON (-want +got):\n%s", diff)
	}
	if !bytes.HasPrefix(doc, []byte(`{"name":"one tool call","places":[{"state":"received","established":`)) {
		t.Errorf("Spec as JSON begins %s, want name, places, …", doc[:60])
	}
}

// wellFormed reads a picture as XML and returns how many script elements it holds.
func wellFormed(doc []byte) (scripts int, err error) {
	for decoder := xml.NewDecoder(bytes.NewReader(doc)); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return scripts, nil
		}
		if err != nil {
			return scripts, err
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "script" {
			scripts++
		}
	}
}

// TestRunsAreDrawn: every row has its number of runs and a width to match; the drawing has no style sheet and no ids of its own.
func TestRunsAreDrawn(t *testing.T) {
	s := realistic().Spec()
	runs := map[fsm.Mark]int{{From: "<script>", On: "x", To: "y"}: 1000}
	for i, r := range s.Rows {
		runs[fsm.Mark{From: r.From, On: r.On, To: r.To}] = i // no run took the first
	}
	drawn := string(fsm.SVGRuns(s, runs))
	if scripts, err := wellFormed([]byte(drawn)); err != nil || scripts != 0 || strings.Contains(drawn, "<style") || strings.Contains(drawn, " id=") {
		t.Errorf("SVGRuns() has %d scripts, error %v, or a style sheet or ids:\n%s", scripts, err, drawn)
	}
	last := len(s.Rows) - 1
	for i, r := range s.Rows {
		label := fmt.Sprintf("%s %d", r.On, i)
		if shown := strings.Contains(drawn, label+"<") || strings.Contains(drawn, label+" /"); shown != (i > 0) {
			t.Errorf("SVGRuns() labels %s wrongly", r)
		}
		if !strings.Contains(drawn, fmt.Sprintf("\ntaken by %d", i)) {
			t.Errorf("SVGRuns() has no tooltip for %s", r)
		}
	}
	for _, want := range []string{`stroke-width="6.0"`, fmt.Sprintf(" %d</text>", last), " ended here</text>"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("SVGRuns() has no %s", want)
		}
	}
}

func TestEveryRowIsDrawn(t *testing.T) {
	s := realistic().Spec()
	if got := strings.Count(string(fsm.SVG(s, nil)), "-&gt; "); got != len(s.Rows) {
		t.Errorf("SVG names %d rows, want %d", got, len(s.Rows))
	}
	if got := strings.Count(string(fsm.DOT(s, nil)), "->"); got != len(s.Rows) {
		t.Errorf("DOT draws %d rows, want %d", got, len(s.Rows))
	}
	// One arrow into the start and one out of each terminal state besides the rows.
	if got := strings.Count(string(fsm.Mermaid(s, nil)), " --> "); got != len(s.Rows)+1+4 {
		t.Errorf("Mermaid draws %d arrows, want %d", got, len(s.Rows)+1+4)
	}
}

type textBox struct {
	text                     string
	left, right, top, bottom float64
}

var textElement = regexp.MustCompile(
	`<text x="(\d+)" y="(\d+)" class="[^"]*"[^>]*?(?: text-anchor="(\w+)")? font-size="(\d+)"[^>]*>([^<]*)</text>`)

func textBoxes(t *testing.T, svg []byte) []textBox {
	t.Helper()
	var boxes []textBox
	for _, m := range textElement.FindAllStringSubmatch(string(svg), -1) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		size, errSize := strconv.ParseFloat(m[4], 64)
		if errX != nil || errY != nil || errSize != nil {
			t.Fatal(errX, errY, errSize)
		}
		label := html.UnescapeString(m[5])
		width := 0.6 * size * float64(utf8.RuneCountInString(label))
		switch m[3] {
		case "middle":
			x -= width / 2
		case "end":
			x -= width
		}
		boxes = append(boxes, textBox{label, x, x + width, y - 0.75*size, y + 0.2*size})
	}
	return boxes
}

// collisions names texts that lie over one another or outside the picture.
func collisions(boxes []textBox) []string {
	var all []string
	for i, a := range boxes {
		if a.left < 0 {
			all = append(all, a.text+" leaves the picture")
		}
		for _, b := range boxes[i+1:] {
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				all = append(all, a.text+" over "+b.text)
			}
		}
	}
	return all
}

func TestTextDoesNotOverlap(t *testing.T) {
	for _, marks := range []fsm.Marks{nil, byApproval(), byBlock()} {
		svg := fsm.SVG(realistic().Spec(), marks)
		boxes := textBoxes(t, svg)
		if want := strings.Count(string(svg), "<text "); len(boxes) != want || want < 60 {
			t.Fatalf("found %d texts, want %d and at least 60", len(boxes), want)
		}
		if got := collisions(boxes); len(got) > 0 {
			t.Errorf("SVG(%d marks): %v, want no collision", len(marks), got)
		}
	}
	if got := collisions([]textBox{{"a", 0, 9, 0, 9}, {"b", 8, 12, 8, 12}}); len(got) != 1 {
		t.Errorf("collisions(two that overlap) = %v, want one", got)
	}
}
