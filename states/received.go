package states

import "pgfsm/policy"

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	v := screen(r.bundle, &r.request)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v}}
}

// screen returns the input gate's verdict.
func screen(b *policy.Bundle, req *Request) policy.Verdict {
	switch {
	case req.Large != nil:
		return b.ScreenLarge(req.Large)
	case req.Kind == KindAsk:
		return b.Screen(string(req.Text))
	}
	return b.ScreenCall(req.Kind, req.Text, req.Round)
}
