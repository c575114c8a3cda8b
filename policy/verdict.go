package policy

// Outcome is a gate's decision. The zero Outcome and every unknown word block.
type Outcome string

// The three outcomes.
const (
	Block Outcome = "block"
	Allow Outcome = "allow"
	Hold  Outcome = "hold" // an approver has to decide
)

// A Verdict is a gate's decision with its explanation.
type Verdict struct {
	Code    Code    `json:"code"`    // empty when the outcome is Allow
	Gate    Gate    `json:"gate"`    // the gate that decided
	Outcome Outcome `json:"outcome"` // its decision
	Reason  string  `json:"reason"`  // one sentence for a person
}

// Allows reports whether the run may continue. The zero Verdict does not allow it.
func (v Verdict) Allows() bool { return v.Outcome == Allow }

// Holds reports whether the call needs an approval.
func (v Verdict) Holds() bool { return v.Outcome == Hold }

// Blocks reports whether the verdict ends the run: every verdict that neither allows nor holds.
func (v Verdict) Blocks() bool { return !v.Allows() && !v.Holds() }

// Gate names a gate in verdicts, traces and messages.
type Gate string

// The gates, in the order in which a run meets them.
const (
	GateInput     Gate = "input"     // INV-0
	GatePlan      Gate = "plan"      // INV-1
	GateSchema    Gate = "schema"    // INV-2
	GateAllowlist Gate = "allowlist" // INV-3
	GateGrant     Gate = "grant"     // narrowing for one run or task, within INV-3
	GatePolicy    Gate = "policy"    // risk and policy
	GateApproval  Gate = "approval"  // a person's decision
	GateOutput    Gate = "output"    // INV-4
	GateEvidence  Gate = "evidence"  // INV-5
	GateRun       Gate = "run"       // not a gate: an effect broke, or the run was stopped
)

func allowedBy(g Gate, reason string) Verdict {
	return Verdict{Gate: g, Outcome: Allow, Reason: reason}
}

func blockedBy(g Gate, c Code, reason string) Verdict {
	return Verdict{Code: c, Gate: g, Outcome: Block, Reason: reason}
}
