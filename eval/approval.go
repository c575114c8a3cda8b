package eval

// An Approval is a call that approvers approved, with the configuration and the time. The servers listed the usual tools then,
// those of the whole evaluation. The votes are replayed for the calls that an attack wants: only the differences between the two
// calls can stop the replay.
type Approval struct {
	Call

	Bundle  string `json:"bundle,omitzero"`   // its configuration, a path from the folder of the cases file; empty: as in the case
	Actor   string `json:"actor,omitzero"`    // the requester; empty: as in the case
	At      string `json:"at,omitzero"`       // the time of the request, in policy.TimeForm; empty: as in the case
	VotesAt string `json:"votes_at,omitzero"` // the time of the votes; empty: At

	// SameRun: the votes belong to the run that makes the attack's call. Real runs never share an id, so without this the id alone
	// stops every replay.
	SameRun bool `json:"same_run,omitzero"`
}
