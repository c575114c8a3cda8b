package states

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	v := r.bundle.Screen(texts(r.request)...)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v}}
}

// texts returns what the input rules look at: the question, or the call's bytes and every string in them, so that an
// escape cannot hide a word.
func texts(req Request) []string {
	if req.Kind == KindAsk {
		return []string{string(req.Text)}
	}
	found := spoken([]string{string(req.Text)}, req.Text)
	if len(req.Round) > 0 {
		found = spoken(append(found, string(req.Round)), req.Round)
	}
	return found
}

// spoken appends every string of a JSON text, as far as it is one: what is not strict JSON is refused by the plan gate.
func spoken(found []string, text []byte) []string {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return found
		}
		if tok.Kind() == '"' {
			found = append(found, tok.String())
		}
	}
}
