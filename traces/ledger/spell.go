package ledger

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"pgfsm/policy/canonical"
)

// spelled writes a payload in canonical form, as it will stand in its event. It may write over b. What comes in is read with
// [respelled], which knows nothing of the methods here.
func spelled(b []byte, p payload) ([]byte, error) {
	o := canonical.NewObject(b[:0])
	p.spell(o)
	text := o.Bytes()
	if bytes.Contains(text, instead) {
		// Perhaps a text was not UTF-8. An object has one U+FFFD for several broken bytes in a row, and events have one for each.
		return respelled(p)
	}
	return text, nil
}

// instead is what stands for bytes that are not UTF-8.
var instead = []byte(string(utf8.RuneError))

// respelled writes a payload in canonical form by what its type says of its members.
func respelled(p payload) ([]byte, error) {
	b, err := canonical.Sorted(p)
	if err != nil {
		return nil, err
	}
	return canonical.JSON(b)
}

func (p *created) spell(o *canonical.Object) {
	o.Digest("bundle", p.Bundle)
	if p.Call == nil {
		o.Raw("call", nil)
	} else {
		o.Object("call", p.Call.spell)
	}
	o.Text("env", p.Env)
	o.Text("format", p.Format)
	o.Digest("machine", p.Machine)
	o.Text("owner", p.Owner)
	o.Object("request", p.Request.Spell)
}

func (c *call) spell(o *canonical.Object) {
	o.Raw("args", c.Args)
	o.Digest("arguments", c.Arguments)
	o.Digest("definition", c.Definition)
	o.Text("server", c.Server)
	o.Text("tool", c.Tool)
}

func (p *scored) spell(o *canonical.Object) {
	o.Text("mode", p.Mode)
	o.Texts("rules", p.Rules)
	o.Int("score", p.Score)
}

func (p *decision) spell(o *canonical.Object) {
	o.Digest("bundle", p.Bundle)
	o.Text("code", p.Code)
	o.Text("condition", p.Condition)
	o.Text("gate", p.Gate)
	o.Text("outcome", p.Outcome)
	o.Text("policy", p.Policy)
	o.Text("reason", p.Reason)
}

func (a *anchor) spell(o *canonical.Object) {
	o.Digest("last", a.Last)
	o.Int("steps", a.Steps)
}

func (p *asked) spell(o *canonical.Object) {
	o.Texts("approvers", p.Approvers)
	o.Digest("binding", p.Binding)
	o.Text("expires", p.Expires)
	o.Digest("last", p.Last)
	o.Int("quorum", p.Quorum)
	o.Int("steps", p.Steps)
}

func (p *voted) spell(o *canonical.Object) {
	o.Digest("binding", p.Binding)
	o.Bool("decides", p.Decides)
	o.Text("key", p.Key)
	o.Text("reason", p.Reason)
	o.Text("token", p.Token)
}

func (p *expired) spell(o *canonical.Object) {
	o.Digest("binding", p.Binding)
	o.Text("expires", p.Expires)
}

func (p *claimed) spell(o *canonical.Object) { o.Text("owner", p.Owner) }

func (p *sent) spell(o *canonical.Object) {
	o.Digest("last", p.Last)
	o.Digest("permit", p.Permit)
	o.Int("steps", p.Steps)
}

func (p *returned) spell(o *canonical.Object) {
	o.Int("bytes", p.Bytes)
	o.Digest("result", p.Result)
}

func (p *ended) spell(o *canonical.Object) {
	o.Digest("head", p.Head)
	o.Digest("last", p.Last)
	o.Object("outcome", p.Outcome.Spell)
	o.Int("steps", p.Steps)
}

func (p *delivered) spell(o *canonical.Object) { o.Text("how", p.How) }

func (p *passed) spell(o *canonical.Object) {
	o.Text("direction", p.Direction)
	o.Text("method", p.Method)
	o.Digest("params", p.Params)
	o.Text("server", p.Server)
	o.Text("token", p.Token)
}

func (p *tokenCreated) spell(o *canonical.Object) {
	o.Text("expires", p.Expires)
	o.Text("id", p.ID)
	o.Text("name", p.Name)
	o.Text("role", p.Role)
	o.Digest("secret", p.Secret)
}

func (p *tokenRevoked) spell(o *canonical.Object) { o.Text("id", p.ID) }

func (p *pruned) spell(o *canonical.Object) {
	o.Text("before", p.Before)
	number(o, "events", p.Events)
	o.Digest("head", p.Head)
	o.Int("runs", p.Runs)
	number(o, "seq", p.Seq)
	if len(p.Tasks) > 0 {
		o.Objects("tasks", len(p.Tasks), func(o *canonical.Object, i int) { p.Tasks[i].spell(o) })
	}
	o.Objects("tokens", len(p.Tokens), func(o *canonical.Object, i int) { p.Tokens[i].spell(o) })
}

func (c *taskCall) spell(o *canonical.Object) {
	o.Int("calls", c.Calls)
	o.Text("server", c.Server)
	o.Text("task", c.Task)
	o.Text("tool", c.Tool)
}

func (t *Token) spell(o *canonical.Object) {
	o.Text("created", t.Created)
	o.Text("expires", t.Expires)
	o.Text("id", t.ID)
	o.Text("name", t.Name)
	o.Text("revoked", t.Revoked)
	o.Text("role", t.Role)
	o.Digest("secret", t.Secret)
	number(o, "seq", t.Seq)
}

// number writes a number that an int need not hold.
func number(o *canonical.Object, name string, value int64) {
	var room [20]byte // for any number
	o.Raw(name, strconv.AppendInt(room[:0], value, 10))
}
