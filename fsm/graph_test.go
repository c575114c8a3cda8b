package fsm_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/fsm"
	"pgfsm/internal/test/check"
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

// artefacts of the whole machine are in docs/internals, where the tests of package states hold them to the table.
func artefacts() map[string][]byte {
	s := realistic().Spec()
	strange := append(byBlock(), fsm.Mark{From: "blocked", On: "retry<b>", To: "received"})
	return map[string][]byte{
		"proofs-broken.txt": proofs(broken()),
		"approved.svg":      fsm.SVG(s, byApproval()),
		"strange.svg":       fsm.SVG(s, strange),
		"strange.dot":       fsm.DOT(s, strange),
		"broken.svg":        fsm.SVGInPage(broken(), nil),
		"empty.svg":         fsm.SVG(&fsm.Spec{}, nil),
	}
}

func TestArtefactsAreGolden(t *testing.T) {
	again := artefacts()
	for name, doc := range artefacts() {
		t.Run(name, func(t *testing.T) {
			golden.File(t, filepath.Join("testdata", name), doc)
			if !bytes.Equal(doc, again[name]) {
				t.Error("the bytes change from one call to the next, want the same")
			}
		})
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
	check.NoError(t, err)
	got := new(fsm.Spec)
	check.NoError(t, json.Unmarshal(doc, got, json.RejectUnknownMembers(true)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Spec through JSON (-want +got):\n%s", diff)
	}
	if !bytes.HasPrefix(doc, []byte(`{"name":"pgfsm","places":[{"state":"received","established":`)) {
		t.Errorf("Spec as JSON begins %s, want name, places, …", doc[:52])
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

func TestEveryRowIsDrawn(t *testing.T) {
	s := realistic().Spec()
	if got := strings.Count(string(fsm.SVG(s, nil)), "<path class=\"line\""); got != len(s.Rows) {
		t.Errorf("SVG draws %d rows, want %d", got, len(s.Rows))
	}
	if got := strings.Count(string(fsm.DOT(s, nil)), "->"); got != len(s.Rows) {
		t.Errorf("DOT draws %d rows, want %d", got, len(s.Rows))
	}
}

// TestWaysAreMarked shows that exactly the steps of a run are emphasized, with their numbers.
func TestWaysAreMarked(t *testing.T) {
	s := realistic().Spec()
	for _, marks := range []fsm.Marks{byApproval(), byBlock()} {
		drawn := string(fsm.SVGInPage(s, marks))
		if taken, want := strings.Count(drawn, `class="taken"`), 3*len(marks)+1; taken != want {
			t.Errorf("SVG emphasizes %d elements, want %d: line and label of each of %d steps, and the states", taken, want, len(marks))
		}
		for i, m := range marks {
			if step := fmt.Sprintf("%s (%d)", m.On, i+1); !strings.Contains(drawn, step) {
				t.Errorf("SVG has no label %q", step)
			}
		}
	}
}
