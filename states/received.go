package states

import "pgfsm/policy"

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	v := screenRequest(r.bundle, &r.request)
	if !v.Allows() {
		return blockRun(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v}}
}

// screenRequest returns the input gate's verdict.
func screenRequest(b *policy.Bundle, req *Request) policy.Verdict {
	switch {
	case req.Large != nil:
		return b.ScreenLarge(req.Large)
	case req.Kind == KindAsk:
		return b.Screen(string(req.Text))
	}
	return b.ScreenCall(req.Kind, req.Text, req.Round)
}
