package states

import (
	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// received screens the request (INV-0): before discovery, before any effect.
type received struct{}

func (received) Want(*Run) Command { return nil }

func (received) Judge(r *Run, _ Event) Judgement {
	v, plan := screen(r.bundle, &r.request)
	if !v.Allows() {
		return block(v)
	}
	return Judgement{Screen, &ScreenedFact{Bundle: r.bundle.Digest(), Request: r.asked, Verdict: v, plan: plan}}
}

// screen returns the input gate's verdict and, of a call, the canonical form of its plan. That is nil if the plan is not
// strict JSON, which the plan gate refuses.
func screen(b *policy.Bundle, req *Request) (policy.Verdict, []byte) {
	if req.Kind == KindAsk {
		return b.Screen(string(req.Text)), nil
	}
	plan, err := canonical.JSON(req.Text)
	if err != nil {
		plan = nil
	}
	return b.ScreenCall(req.Kind, req.Text, plan, req.Round), plan
}
