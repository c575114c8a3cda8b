package attack

import (
	"strconv"

	"pgfsm/eval"
	"pgfsm/policy/origin"
)

// sessionNow returns the session before the next call; nil in arms that look at none. Each search has the whole budget.
func (t *trial) sessionNow() *origin.Session {
	if t.session != nil {
		t.session.Holds = t.bundle.HoldsItem(t.unit.c.Actor, nil)
		t.session.Sent = func() ([]origin.Sent, string) { return t.sent, "" }
	}
	return t.session
}

// addToSession adds a call that was made, with its result, to the session of the calls after it.
func (t *trial) addToSession(c *eval.Call) {
	if t.session == nil {
		return
	}
	judged := int64(2 * (len(t.session.Results) + 1))
	t.sent = append(t.sent, origin.NewSent(judged, c.Args, nil))
	t.session.Results = append(t.session.Results, origin.Result{
		Run:    strconv.FormatInt(judged, 10),
		Call:   judged,
		Entry:  judged + 1,
		Server: c.Server,
		Tool:   c.Tool,
		Failed: c.Failed,
		Value:  c.Result,
		Found:  origin.Found(t.bundle.Origins().Find(t.sessionNow(), c.Server, c.Tool, c.Args, nil)),
	})
}
