package api

import (
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// listPolicies returns the number of decisions of each policy and risk rule.
func (h *Handler) listPolicies(v *visit) (answer, error) {
	return answerInTurn(h, v, func(r ledger.Reader) (present.Policies, error) {
		return present.NewPolicies(r, h.ActiveBundle())
	})
}

// listServers returns the servers as the service last saw them.
func (h *Handler) listServers(v *visit) (answer, error) {
	var servers []present.Server
	note := "this service has no servers; these are the ones that runs of the ledger used"
	if h.Servers != nil {
		servers, note = h.Servers()
	}
	return answerInTurn(h, v, func(r ledger.Reader) (present.Servers, error) {
		return present.NewServers(r, servers, note)
	})
}
