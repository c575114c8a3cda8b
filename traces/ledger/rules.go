package ledger

import "pgfsm/traces/ledger/checkpoint"

// A Rule is the number of a rule in docs/reference/record-format.md.
type Rule = checkpoint.Rule

// The rules of entries.
const (
	ruleForm       Rule = "R1"
	ruleHeader     Rule = "R2"
	ruleClass      Rule = "R3"
	ruleOrder      Rule = "R4"
	ruleFirstEntry Rule = "R5"
	ruleChain      Rule = "R6"
	ruleGeneration Rule = "R7"
	ruleBlobs      Rule = "R8"
	ruleSteps      Rule = "R9"

	ruleRunOrder   Rule = "R10"
	ruleRequester  Rule = "R11"
	ruleDecision   Rule = "R12"
	ruleHold       Rule = "R13"
	ruleVote       Rule = "R14"
	ruleVoter      Rule = "R15"
	ruleQuorum     Rule = "R16"
	ruleVoteRight  Rule = "R17"
	ruleWithdrawal Rule = "R18"
	ruleExpiry     Rule = "R19"
	ruleCall       Rule = "R20"
	ruleResult     Rule = "R21"
	ruleOutcome    Rule = "R22"
	ruleDelivery   Rule = "R23"
	ruleOrigins    Rule = "R50"

	ruleTokens      Rule = "R24"
	ruleBlocks      Rule = "R25"
	ruleKeys        Rule = "R26"
	ruleSession     Rule = "R27"
	ruleActivation  Rule = "R28"
	ruleClosed      Rule = "R29"
	ruleLate        Rule = "R51"
	ruleConnections Rule = "R52"

	rulePruneRanges    Rule = "R30"
	rulePruneClass     Rule = "R31"
	rulePruneRuns      Rule = "R32"
	rulePruneCounts    Rule = "R33"
	rulePruneRetention Rule = "R34"
	rulePruneErasure   Rule = "R35"
	rulePruneOrdered   Rule = "R36"
	rulePruneOrder     Rule = "R37"
	ruleLeftOut        Rule = "R38"
)

// faultOf returns the fault of a row that breaks a rule.
func faultOf(rule Rule, table, key, what string) *Fault { return &Fault{table, key, what, rule} }
