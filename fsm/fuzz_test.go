package fsm_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgfsm/fsm"
)

// FuzzPictures puts any text into any place of a Spec: nothing panics, and what comes out is well-formed.
func FuzzPictures(f *testing.F) {
	f.Add("received", "screen", "answered", "a sentence", true)
	evil := "\"</title><script>alert(1)</script>\\\n%%{init}%% ]]>&amp;;\u202e\x00\xff--> x: y" + strings.Repeat("漢", 60)
	f.Add("a"+evil, evil, "b"+evil, evil, false)
	f.Fuzz(func(t *testing.T, from, on, to, sentence string, terminal bool) {
		s := &fsm.Spec{Name: sentence,
			Places: []fsm.Place{
				{State: fsm.State(from), Established: sentence},
				{State: fsm.State(to), Established: sentence, Terminal: terminal},
				{State: fsm.State(on), Established: from},
			},
			Rows: []fsm.SpecRow{
				{From: fsm.State(from), On: fsm.Trigger(on), To: fsm.State(to), Why: sentence},
				{From: fsm.State(to), On: fsm.Trigger(sentence), To: fsm.State(from), Guard: sentence},
				{From: fsm.State(from), On: fsm.Trigger(to), To: fsm.State(on)},
			},
			Claims: fsm.Claims{Effects: []fsm.Effect{{State: fsm.State(to), On: fsm.Trigger(on), Dominators: []fsm.State{fsm.State(on)}}},
				Between: []fsm.Between{{From: fsm.State(from), To: fsm.State(to), Via: fsm.State(on)}}}}
		marks := fsm.Marks{{From: fsm.State(from), On: fsm.Trigger(on), To: fsm.State(to)}}
		for _, m := range []fsm.Marks{nil, marks} {
			if scripts, err := wellFormed(fsm.SVG(s, m)); err != nil || scripts != 0 {
				t.Errorf("SVG has %d scripts and error %v, want none", scripts, err)
			}
			if !utf8.Valid(fsm.DOT(s, m)) {
				t.Error("DOT is not UTF-8")
			}
		}
		fsm.Prove(s)
	})
}
