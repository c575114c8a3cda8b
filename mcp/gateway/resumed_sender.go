package gateway

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// A voice is the session.Sender of a request that repeats an errand's. Who speaks during the errand goes by what its first request wanted; what
// gets out goes by what this one wants.
type resumedSender struct {
	session.Sender
	token jsontext.Value // nil: it wants no progress
	level severity       // zero: it wants no log
}

// Send says what the request wants to hear. To keep silent is no error.
func (v *resumedSender) Send(message []byte) error {
	m, err := wire.Read(message)
	if err != nil { // it is said by the gateway, or was read before
		return err
	}
	switch m.Method {
	case "notifications/progress":
		if v.token == nil {
			return nil
		}
		params, err := wire.Set(m.Params, "progressToken", v.token)
		if err != nil {
			return err
		}
		message = wire.Call(nil, nil, m.Method, params)
	case "notifications/message":
		if !v.level.includes(m.Params, true) {
			return nil
		}
	}
	return v.Sender.Send(message)
}

// voice is the request's session.Sender for what is said during an errand that it repeats; nil if it has none.
func (q *request) resumedSender() session.Sender {
	if q.Out == nil {
		return nil
	}
	return &resumedSender{q.Out, wire.ProgressToken(wire.Member(q.Params, "_meta")), q.wantedLogLevel()}
}
