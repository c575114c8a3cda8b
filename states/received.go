package states

import "pgfsm/policy/canonical"

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	all, plan := texts(&r.request)
	v := r.bundle.Screen(all...)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v, plan: plan}}
}

// texts returns what the input rules look at: the question, or the call's bytes and every string in them, so that an
// escape cannot hide a word. What is not strict JSON is refused by the plan gate. The canonical form of the call's bytes is
// returned too, if that is known then.
func texts(req *Request) (found []string, plan []byte) {
	if req.Kind == KindAsk {
		return []string{string(req.Text)}, nil
	}
	found, plan = canonical.JSONStrings(nil, req.Text)
	if len(req.Round) > 0 {
		found = canonical.Strings(found, req.Round)
	}
	return found, plan
}
