package present

import "pgfsm/internal/canonical"

// A Reload is what came of reading a gateway's configuration again, which can be used.
type Reload struct {
	SchemaVersion int              `json:"schema_version"`
	Bundle        canonical.Digest `json:"bundle"`   // that is active now
	Previous      canonical.Digest `json:"previous"` // that was active before
	Changed       []string         `json:"changed"`  // keys of the configuration whose new values are active
	Restart       []string         `json:"restart"`  // keys whose new values are not active before a restart
	Warnings      []string         `json:"warnings"`
	Tests         int              `json:"tests"` // of tests.yaml beside the policy, all of them passed
	Compared      *ReloadCompared  `json:"compared,omitzero"`
}

// ReloadCompared is how the policies and risk rules before and after judge the newest calls of the ledger.
type ReloadCompared struct {
	Calls     int            `json:"calls"`             // that were judged by both
	Since     string         `json:"since"`             // when the oldest of them was requested; empty without calls
	Partial   bool           `json:"partial"`           // there are older calls
	Kinds     map[string]int `json:"kinds"`             // calls by kind of change, as pgfsm policy diff names it; kinds without calls are left out
	Otherwise int            `json:"decided_otherwise"` // calls that are decided otherwise
	Runs      []ReloadRun    `json:"runs"`              // the newest of them, at most MaxReloadRuns
	Skipped   int            `json:"skipped"`           // calls that cannot be compared
}

// MaxReloadRuns bounds the runs of [ReloadCompared].
const MaxReloadRuns = 10

// A ReloadRun is a call that is decided otherwise.
type ReloadRun struct {
	Run    string `json:"run"`
	Tool   string `json:"tool"` // server and tool
	Before string `json:"before"`
	After  string `json:"after"`
	By     string `json:"by"` // the policy that decides now
}
