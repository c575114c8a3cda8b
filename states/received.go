package states

import "pgfsm/policy/canonical"

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	v := r.bundle.Screen(texts(&r.request)...)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v}}
}

// texts returns what the input rules look at: the question, or the call's bytes and every string in them, so that an
// escape cannot hide a word. What is not strict JSON is refused by the plan gate.
func texts(req *Request) []string {
	if req.Kind == KindAsk {
		return []string{string(req.Text)}
	}
	found := canonical.Strings(nil, req.Text)
	if len(req.Round) > 0 {
		found = canonical.Strings(found, req.Round)
	}
	return found
}
