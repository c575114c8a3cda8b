package screen

import "testing"

func TestX(t *testing.T) {
	s, err := Compile(Defaults(), 16384)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.rules {
		t.Log(r.ID, len(r.Pattern))
	}
	t.Log(len(s.programs), len(s.folded.ends), s.folded.width)
	for _, p := range s.programs {
		if len(p.folded.clauses) == 0 {
			t.Log("no prefilter", s.rules[p.rule].ID, p.folded.re.String())
		}
	}
}
