package runner

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy/redact"
	"pgfsm/states"
)

// cleanResult masks the operator's secrets in the outcome of a call, and then removes what redact rules
// find. Nothing sees the outcome before. It returns what was removed.
func (r *ConfiguredRunner) cleanResult(c *states.CallTool, returned *upstream.Returned) (hits []redact.Hit) {
	rules := r.Bundle.Redaction(c.Server, c.Tool)
	if original := returned.Result; original != nil {
		done := rules.Document(r.mask(original))
		if hits = done.Hits; done.Withheld {
			done.Text = withheldResult(done.Why)
		}
		if returned.Result = done.Text; !bytes.Equal(done.Text, original) {
			returned.Members = nil
		}
	}
	if returned.RPCError == nil || rules == nil {
		return hits
	}

	var words wire.Object
	words.Add("message", wire.Quote(returned.RPCError.Message))
	if returned.RPCError.Data != nil {
		words.Add("data", returned.RPCError.Data)
	}
	done := rules.Data(r.mask(words.Value()))
	if len(done.Hits) == 0 && !done.Withheld {
		return nil
	}
	rpc := upstream.RPCError{Code: returned.RPCError.Code, Message: redact.Mask}
	if !done.Withheld {
		rpc.Message, _ = wire.Text(wire.Member(done.Text, "message")) // it is the text that was added
		rpc.Data = wire.Member(done.Text, "data")
	}
	returned.RPCError = &rpc
	returned.Reason = fmt.Sprintf("it answered with error %d, of which redact rules removed a part", rpc.Code)
	return done.Hits
}

// withheldResult stands for a result that must not be shown.
func withheldResult(why string) jsontext.Value {
	var text wire.Object
	text.Add("text", wire.Quote("The call was made. pgfsm withholds its result: "+why+"."))
	text.Add("type", []byte(`"text"`))
	var result wire.Object
	result.Add("content", append(append([]byte{'['}, text.Value()...), ']'))
	result.Add("isError", []byte("true"))
	return result.Value()
}

// redactMessage removes what redact rules find in a message that a server sends beside the results of calls.
// If why is not empty, the message must not be relayed.
func (r *ConfiguredRunner) redactMessage(server string, text []byte) (clean []byte, why string) {
	done := r.Bundle.Redaction(server, "").Document(text)
	if done.Withheld {
		return nil, done.Why
	}
	return done.Text, ""
}
