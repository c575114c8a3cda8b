package api

import "pgfsm/internal/present"

// A page is part of a list of requests.
type page struct {
	SchemaVersion int           `json:"schema_version"`
	Requests      []present.Run `json:"requests"`
	// Value of the parameter after for the next page; empty on the last.
	Next string `json:"next"`
}

// A voted document answers a vote that counted. Its request is in the state after the vote.
type voted struct {
	SchemaVersion int         `json:"schema_version"`
	Request       present.Run `json:"request"`
	// Reason why the call will not be made although the vote counts.
	NotCalled string `json:"not_called,omitzero"`
}

type health struct {
	SchemaVersion int    `json:"schema_version"`
	Status        string `json:"status"`
}

// readiness answers /readyz.
type readiness struct {
	health
	Warnings []string `json:"warnings"`
}
