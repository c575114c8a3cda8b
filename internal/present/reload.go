package present

import "pgfsm/internal/canonical"

// A Reload describes the successful reload of a gateway's configuration.
type Reload struct {
	SchemaVersion int              `json:"schema_version"`
	Bundle        canonical.Digest `json:"bundle"`   // digest of the active bundle
	Previous      canonical.Digest `json:"previous"` // digest of the formerly active bundle
	Changed       []string         `json:"changed"`  // keys of the configuration whose new values are active
	Restart       []string         `json:"restart"`  // keys whose new values are not active before a restart
	Warnings      []string         `json:"warnings"`
	Tests         int              `json:"tests"` // number of passed tests in tests.yaml beside the policy
	Compared      *ReloadCompared  `json:"compared,omitzero"`
}

// ReloadCompared compares how the policies and risk rules before and after a reload judge the ledger's newest calls.
type ReloadCompared struct {
	Calls     int            `json:"calls"`             // calls judged by both
	Since     string         `json:"since"`             // time of the oldest call's request; empty without calls
	Partial   bool           `json:"partial"`           // there are older calls
	Kinds     map[string]int `json:"kinds"`             // calls by kind of change, in the terms of pgfsm policy diff; without kinds that have no calls
	Otherwise int            `json:"decided_otherwise"` // number of calls with a different decision
	Runs      []ReloadRun    `json:"runs"`              // the newest runs with a different decision, at most MaxReloadRuns
	Skipped   int            `json:"skipped"`           // calls that cannot be compared
}

// MaxReloadRuns bounds the runs of [ReloadCompared].
const MaxReloadRuns = 10

// A ReloadRun is a call with a different decision.
type ReloadRun struct {
	Run    string `json:"run"`
	Tool   string `json:"tool"` // server and tool
	Before string `json:"before"`
	After  string `json:"after"`
	By     string `json:"by"` // the policy that decides now
}
