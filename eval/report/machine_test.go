package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"testing"

	"pgfsm/eval/attack"
	"pgfsm/fsm"
)

// TestDrawing holds the drawing to the machine's table: every edge stands once, with its number, and is as strong as it was
// taken.
func TestDrawing(t *testing.T) {
	m, err := newMachine()
	if err != nil {
		t.Fatal(err)
	}
	var edges []edge
	for i, r := range m.spec.Rows {
		edges = append(edges, edge{fsm.Mark{From: r.From, On: r.On, To: r.To}, i}) // the first one by none
	}
	d, err := draw(m.spec, edges)
	if err != nil {
		t.Fatal(err)
	}
	drawn := string(d.HTML)
	wellFormed(t, drawn)
	for i, r := range m.spec.Rows {
		title := fmt.Sprintf("%s -%s-&gt; %s\n", r.From, r.On, r.To)
		if n := strings.Count(drawn, "<title>"+title); i == 0 && n != 1 || i > 0 && n != 2 { // at the arrow and at its label
			t.Errorf("%s stands %d times in the drawing", title, n)
		}
		says := fmt.Sprintf("%s\n%s\nif %s: %s\n%s</title>", strings.TrimSpace(title), html.EscapeString(r.Why), r.Guard, html.EscapeString(r.GuardWhy), plural(i, "run took it", "runs took it"))
		if !strings.Contains(drawn, says) {
			t.Errorf("the drawing does not say:\n%s", says)
		}
		if label := fmt.Sprintf(">%s %d</text>", r.On, i); i > 0 && !strings.Contains(drawn, label) {
			t.Errorf("the drawing has no label %s", label)
		}
	}
	last := len(m.spec.Rows) - 1
	for _, want := range []string{
		fmt.Sprintf(`stroke-width="%s"`, px(thickest)), fmt.Sprintf(`stroke-width="%s"`, px(thinnest+(thickest-thinnest)/float64(last))), " runs</text>",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the drawing has no %s", want)
		}
	}
	if strings.Contains(drawn, "<style") || strings.Contains(drawn, ` id="`) || d.Style == "" {
		t.Error("the drawing has a style sheet or ids of its own")
	}
}

func wellFormed(t *testing.T, doc string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(doc))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the drawing is not well-formed: %v", err)
		}
	}
}

// TestDrawingWithoutRuns draws what nobody took, and edges that the table does not have.
func TestDrawingWithoutRuns(t *testing.T) {
	m, err := newMachine()
	if err != nil {
		t.Fatal(err)
	}
	strange := edge{fsm.Mark{From: `<script>`, On: "x", To: "blocked"}, 7}
	d, err := draw(m.spec, []edge{strange})
	if err != nil {
		t.Fatal(err)
	}
	drawn := string(d.HTML)
	if strings.Contains(drawn, "script") || strings.Contains(drawn, "f-way") || strings.Contains(drawn, " runs</text>") {
		t.Error("the drawing shows something that nobody took")
	}
	edges := []edge{strange, {fsm.Mark{From: m.spec.Rows[1].From, On: m.spec.Rows[1].On, To: m.spec.Rows[1].To}, 1}}
	if byTable(m.spec, edges); edges[1] != strange {
		t.Errorf("byTable() = %v: what the table does not have comes last", edges)
	}
}

// TestDrawingOfAnotherForm: a drawing that is not what this package reads is an error, and never a wrong picture.
func TestDrawingOfAnotherForm(t *testing.T) {
	spec := &fsm.Spec{Rows: []fsm.SpecRow{{From: "a", On: "b", To: "c"}}}
	edge := []string{"<g><title>a -b-&gt; c", "why", "if g: why</title>", `<path d="M1 2V3" class="f-none s-wire" fill="none" stroke="#6e7781" stroke-width="1.4"/>`,
		`<path d="M1 4L5 6L7 8Z" class="f-wire s-none" fill="#6e7781" stroke="none"/>`, `<text x="1" y="20" class="f-name s-none" fill="#1f2328" stroke="none">b</text>`, "</g>"}
	for _, tt := range []struct {
		name    string
		at      int // the line that is another one
		to      string
		refused bool
	}{
		{"as-expected", 0, edge[0], false},
		{"no-title", 0, "<g><title>a to c", true},
		{"title-does-not-end", 2, "if g: why", true},
		{"group-does-not-end", 6, "<g>", true},
		{"one-line-more", 3, edge[3] + "\n" + edge[3], true},
		{"no-head", 4, `<path d="M1 4"/>`, true},
		{"no-label", 5, `<text class="f-name s-none">b</text>`, true},
		{"label-does-not-end", 5, `<text x="1" y="20" class="f-name s-none">`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := append([]string{}, edge...)
			lines[tt.at] = tt.to
			w := weights{spec: spec, runs: map[fsm.Mark]int{{From: "a", On: "b", To: "c"}: 3}, ended: map[string]int{}, most: 3}
			_, err := w.lines(strings.Split(strings.Join(lines, "\n"), "\n"))
			if got := errors.Is(err, errPicture); got != tt.refused || err != nil && !got {
				t.Errorf("lines() = %v, want it refused: %t", err, tt.refused)
			}
		})
	}
	if _, _, err := cutStyle(edge); !errors.Is(err, errPicture) {
		t.Errorf("cutStyle() = %v, want that there is none", err)
	}
}

// TestResultsOfAnotherMachine says so.
func TestResultsOfAnotherMachine(t *testing.T) {
	m, err := newMachine()
	if err != nil {
		t.Fatal(err)
	}
	f := &attackFile{result: &attack.Result{Machine: m.digest, Arms: []attack.Arm{attack.Approvals}}}
	f.result.Overall.Arms = []attack.ArmSection{{Arm: attack.Approvals, Edges: attack.Edges{Wants: []attack.Edge{{From: "received", On: "screen", To: "screened", Runs: 1}}}}}
	for _, other := range []bool{false, true} {
		if other {
			f.result.Machine = "sha256:0"
		}
		blocks, err := f.paths(m)
		if err != nil || strings.Contains(blocks[0].Para, "another machine") != other {
			t.Errorf("paths() = %q, %v, want that it is of another machine: %t", blocks[0].Para, err, other)
		}
	}
}
