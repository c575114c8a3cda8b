package states

import (
	"bytes"
	"errors"
	"fmt"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Guards see only facts: the verdict must be allow, and its digests must be those of the earlier
// facts. A missing fact refuses.

var errNoFact = errors.New("a fact that this transition needs is missing")

// checkEqual refuses unless both digests are present and equal.
func checkEqual(what string, a, b canonical.Digest) error {
	if a == "" || a != b {
		return fmt.Errorf("the %s differs from the judged one (%s, %s)", what, a.Short(), b.Short())
	}
	return nil
}

func requireAllow(v policy.Verdict) error {
	if !v.Allows() {
		return fmt.Errorf("the %s gate did not allow it: %s", v.Gate, v.Reason)
	}
	return nil
}

func newGuard(name, why string, allow func(*Run) error) fsm.Guard[*Run] {
	return fsm.Guard[*Run]{Name: name, Why: why, Allow: allow}
}

var screenAllows = newGuard("screen_allows", "the input gate allows exactly this request under this bundle",
	func(r *Run) error {
		f := r.facts.Screened
		if f == nil {
			return errNoFact
		}
		return errors.Join(requireAllow(f.Verdict), checkEqual("request", f.Request, r.asked),
			checkEqual("bundle", f.Bundle, r.bundle.Digest()))
	})

var catalogKnown = newGuard("catalog_known", "at least one server is up, and the catalog has a digest",
	func(r *Run) error {
		f := r.facts.Discovered
		if f == nil || f.catalog == nil || r.facts.Screened == nil {
			return errNoFact
		}
		if !f.catalog.Up() {
			return errors.New("no server is up")
		}
		return checkEqual("catalog", f.Catalog, f.catalog.Digest())
	})

var planStrict = newGuard("plan_strict", "the plan gate allows the plan, made for this catalog", func(r *Run) error {
	f := r.facts.Planned
	if f == nil || f.plan == nil || r.facts.Discovered == nil {
		return errNoFact
	}
	return errors.Join(requireAllow(f.Verdict), checkEqual("catalog", f.Catalog, r.facts.Discovered.Catalog),
		checkEqual("plan", f.Digest, f.plan.Digest()))
})

var plannerAsks = newGuard("planner_asks", "the plan is a final_answer that asks for missing information",
	func(r *Run) error {
		f, asked := r.facts.Planned, r.facts.Asked
		if f == nil || f.plan == nil || asked == nil {
			return errNoFact
		}
		if f.plan.Type != policy.PlanFinalAnswer || f.plan.Answer != asked.Answer {
			return errors.New("the question differs from the plan's")
		}
		return errors.Join(requireAllow(f.Verdict), checkEqual("plan", asked.Plan, f.Digest))
	})

var argumentsConform = newGuard("arguments_conform", "the schema gate allows exactly this plan", func(r *Run) error {
	f := r.facts.Validated
	if f == nil || f.tool == nil || r.facts.Planned == nil || r.facts.Planned.plan == nil {
		return errNoFact
	}
	plan := r.facts.Planned.plan
	if plan.Server != f.Server || plan.Tool != f.Tool || f.tool.Server != f.Server || f.tool.Name != f.Tool {
		return errors.New("the judged tool differs from the plan's")
	}
	return errors.Join(requireAllow(f.Verdict), checkEqual("plan", f.Plan, r.facts.Planned.Digest),
		checkEqual("arguments", f.Arguments, plan.ArgsDigest()),
		checkEqual("definition", f.Definition, f.tool.Digest))
})

var toolListed = newGuard("tool_listed", "the allowlist allows the validated tool with the validated definition",
	func(r *Run) error {
		f, v := r.facts.Authorized, r.facts.Validated
		if f == nil || v == nil {
			return errNoFact
		}
		return errors.Join(requireAllow(f.Verdict), checkBound(r, f.Plan, f.Arguments, f.Definition, f.Bundle))
	})

var riskKnown = newGuard("risk_known", "risk and policy judged exactly this call and did not deny it",
	func(r *Run) error {
		f := r.facts.Assessed
		if f == nil || r.facts.Authorized == nil {
			return errNoFact
		}
		if f.Verdict.Blocks() {
			return fmt.Errorf("the policy denied it: %s", f.Verdict.Reason)
		}
		return checkBound(r, f.Plan, f.Arguments, f.Definition, f.Bundle)
	})

// checkBound refuses unless the digests are those of the validated call and of the run's bundle.
func checkBound(r *Run, plan, arguments, definition, bundle canonical.Digest) error {
	v := r.facts.Validated
	if v == nil {
		return errNoFact
	}
	return errors.Join(checkEqual("plan", plan, v.Plan), checkEqual("arguments", arguments, v.Arguments),
		checkEqual("definition", definition, v.Definition), checkEqual("bundle", bundle, r.bundle.Digest()))
}

var policyHolds = newGuard("policy_holds", "the policy holds the call, and the binding is that of this call",
	func(r *Run) error {
		f, a, v := r.facts.Held, r.facts.Assessed, r.facts.Validated
		if f == nil || a == nil || v == nil || v.tool == nil {
			return errNoFact
		}
		if !a.Verdict.Holds() {
			return errors.New("the policy does not hold the call")
		}
		current := bindCall(r, r.bundle, v.tool, a)
		return errors.Join(checkEqual("binding", f.Binding, f.Bound.digest()),
			checkEqual("judgement", f.Binding, current.digest()),
			checkBound(r, a.Plan, f.Bound.Arguments, f.Bound.Definition, a.Bundle))
	})

var personAgreed = newGuard("person_agreed", "the decision approves exactly the bound call", func(r *Run) error {
	f, h := r.facts.Approved, r.facts.Held
	if f == nil || h == nil {
		return errNoFact
	}
	return errors.Join(requireAllow(f.Verdict), checkEqual("binding", f.Binding, h.Binding))
})

var permitMinted = newGuard("permit_minted", "the permit is for the validated call, and a policy or an approval of the same judgement allows it", func(r *Run) error {
	f, v, a := r.facts.Permitted, r.facts.Validated, r.facts.Assessed
	if f == nil || v == nil || a == nil {
		return errNoFact
	}
	if err := stillApproved(r, f, a); err != nil {
		return err
	}
	if f.bundle == nil || f.tool == nil || r.facts.Planned == nil || r.facts.Planned.plan == nil {
		return errNoFact
	}
	plan := r.facts.Planned.plan
	if !bytes.Equal(f.Arguments, plan.Args.Bytes()) {
		return errors.New("the permit is for other arguments")
	}
	if f.Server != v.Server || f.Tool != v.Tool {
		return errors.New("the permit is for another tool")
	}
	if !f.Trace.equal(r.traceContext()) {
		return errors.New("the permit has another trace context")
	}
	// permitIntact checks the permit's own digest.
	return errors.Join(requireAllow(f.Assessed), checkEqual("bundle", f.Bundle, f.bundle.Digest()),
		checkEqual("definition", f.Definition, f.tool.Digest),
		checkBound(r, f.Plan, plan.ArgsDigest(), f.Definition, r.bundle.Digest()))
})

// stillApproved refuses a permit for a held call that is not approved, or that was approved under
// another judgement. Without an approval only the run's own bundle permits a call.
func stillApproved(r *Run, f *PermittedFact, a *AssessedFact) error {
	h := r.facts.Held
	switch {
	case !a.Verdict.Holds():
		return checkEqual("bundle", f.Bundle, r.bundle.Digest())
	case h == nil || r.facts.Approved == nil:
		return errors.New("the policy holds the call, and it is not approved")
	}
	return checkEqual("judgement", f.Binding, h.Binding)
}

var permitIntact = newGuard("permit_intact", "the consumed permit is the minted one, and was not consumed before",
	func(r *Run) error {
		f, p := r.facts.Dispatched, r.facts.Permitted
		if f == nil || p == nil {
			return errNoFact
		}
		if Delegates(r.request.Kind) {
			return errors.New("the client makes the call of this request itself")
		}
		if r.consumed {
			return errors.New("the permit has been consumed")
		}
		return checkEqual("permit", f.Permit, p.Permit)
	})

var permitDelegated = newGuard("permit_delegated", "the client makes the call itself, and the permit handed out is the minted one",
	func(r *Run) error {
		f, p := r.facts.Delegated, r.facts.Permitted
		if f == nil || p == nil {
			return errNoFact
		}
		if !Delegates(r.request.Kind) {
			return errors.New("pgfsm makes the call of this request")
		}
		if r.consumed {
			return errors.New("the permit has been consumed")
		}
		if f.Call != r.askingCall() {
			return errors.New("the permit is for another call of the client")
		}
		return checkEqual("permit", f.Permit, p.Permit)
	})

var reportCaptured = newGuard("report_captured", "the report is about the permit that was handed out", func(r *Run) error {
	f, d := r.facts.Reported, r.facts.Delegated
	if f == nil || d == nil {
		return errNoFact
	}
	return errors.Join(checkConsumed(r), checkEqual("permit", f.Permit, d.Permit))
})

var reportMissing = newGuard("report_missing", "the permit was handed out, and there is no report", func(r *Run) error {
	f, d := r.facts.Unreported, r.facts.Delegated
	if f == nil || d == nil {
		return errNoFact
	}
	if r.facts.Reported != nil {
		return errors.New("there is a report")
	}
	return errors.Join(checkConsumed(r), checkEqual("permit", f.Permit, d.Permit))
})

// checkConsumed refuses unless the permit was handed out.
func checkConsumed(r *Run) error {
	if !r.consumed {
		return errors.New("no permit was handed out")
	}
	return nil
}

var resultCaptured = newGuard("result_captured", "the raw result is that of the permit's one call", func(r *Run) error {
	f, d := r.facts.Executed, r.facts.Dispatched
	if f == nil || d == nil {
		return errNoFact
	}
	if !r.consumed {
		return errors.New("there is a result, but no call was made")
	}
	return errors.Join(checkEqual("permit", f.Permit, d.Permit),
		checkEqual("result", f.Result, f.digest))
})

var outputTyped = newGuard("output_typed", "the output gate allows this result's structured content",
	func(r *Run) error {
		f, e, v := r.facts.Typed, r.facts.Executed, r.facts.Validated
		if f == nil || e == nil || v == nil {
			return errNoFact
		}
		return errors.Join(requireAllow(f.Verdict), checkEqual("result", f.Result, e.Result),
			checkEqual("definition", f.Definition, v.Definition))
	})

var evidenceLocked = newGuard("evidence_locked", "the evidence gate allows a summary of this structured content",
	func(r *Run) error {
		f, t := r.facts.Summarized, r.facts.Typed
		if f == nil || t == nil {
			return errNoFact
		}
		if len(f.Items) == 0 {
			return errors.New("the summary is empty")
		}
		return errors.Join(requireAllow(f.Verdict), checkEqual("structured content", f.Structured, t.Structured))
	})

var answeredRaw = newGuard("answered_raw", "a result exists, and a note says why it is untyped", func(r *Run) error {
	return checkAnswer(r, true)
})

var answeredTyped = newGuard("answered_typed", "a typed result exists and has no summary", func(r *Run) error {
	if r.facts.Typed == nil {
		return errNoFact
	}
	return checkAnswer(r, false)
})

var answeredSummarized = newGuard("answered_summarized", "a typed result with a locked summary exists",
	func(r *Run) error {
		if r.facts.Typed == nil || r.facts.Summarized == nil {
			return errNoFact
		}
		return checkAnswer(r, false)
	})

func checkAnswer(r *Run, note bool) error {
	f, e := r.facts.Answered, r.facts.Executed
	if f == nil || e == nil {
		return errNoFact
	}
	if note && f.Note == "" {
		return errors.New("there is no note why the result is untyped")
	}
	return checkEqual("result", f.Result, e.Result)
}

var gateBlocks = newGuard("gate_blocks", "the run has a blocking verdict, and nothing was sent", func(r *Run) error {
	f := r.facts.Stopped
	if f == nil {
		return errNoFact
	}
	if !f.Verdict.Blocks() || f.Verdict.Code == "" || f.Effect != NotSent {
		return errors.New("the verdict does not block, or something was sent")
	}
	return nil
})

var effectBroke = newGuard("effect_broke", "the run has a failure, and its effect is possible in this state",
	func(r *Run) error {
		f := r.facts.Stopped
		if f == nil {
			return errNoFact
		}
		if !f.Verdict.Blocks() || f.Verdict.Code == "" {
			return errors.New("the run has no failure")
		}
		if !r.consumed && f.Effect != NotSent {
			return errors.New("the failure claims an effect although nothing was sent")
		}
		return nil
	})
