package api

import (
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// listPolicies returns the number of decisions of each policy and risk rule.
func (h *Handler) listPolicies(v *visit) (answer, error) {
	var out present.Policies
	err := h.viewInTurn(v, func(r ledger.Reader) (err error) {
		out, err = present.NewPolicies(r, h.ActiveBundle())
		return err
	})
	return jsonAnswer(out), err
}

// listServers returns the servers as the service last saw them.
func (h *Handler) listServers(v *visit) (answer, error) {
	var servers []present.Server
	note := "this service has no servers; these are the ones that runs of the ledger used"
	if h.Servers != nil {
		servers, note = h.Servers()
	}
	var out present.Servers
	err := h.viewInTurn(v, func(r ledger.Reader) (err error) {
		out, err = present.NewServers(r, servers, note)
		return err
	})
	return jsonAnswer(out), err
}
