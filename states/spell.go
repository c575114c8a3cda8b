package states

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/evidence"
	"pgfsm/policy/risk"
)

// Everything that is recorded is written here, member by member in canonical order. The struct tags say the same; a test
// holds the two to each other.

type spellable interface{ spell(*canonical.Object) }

// spelled is the canonical form of a command, an event or a fact.
func spelled(v spellable) jsontext.Value {
	return appendSpelled(new(canonical.Object), make([]byte, 0, 512), v)
}

// appendSpelled appends the canonical form of v to b, by way of o.
func appendSpelled(o *canonical.Object, b []byte, v spellable) []byte {
	o.Begin(b)
	v.spell(o)
	return o.Bytes()
}

// speller returns an object that is begun, with memory of its own. Whoever is done with what it wrote says so.
func speller() *canonical.Object {
	o := spellers.Get().(*canonical.Object)
	o.Begin(o.Room())
	return o
}

// done keeps an object for others, unless it has become large.
func done(o *canonical.Object) {
	if cap(o.Room()) <= maxRoom {
		spellers.Put(o)
	}
}

var spellers = sync.Pool{New: func() any { return canonical.NewObject(make([]byte, 0, 4<<10)) }}

// maxRoom is the size up to which the memory of an object is kept.
const maxRoom = 64 << 10

// SpellCommand returns a command in canonical form.
func SpellCommand(c Command) jsontext.Value { return spelled(c) }

// SpellEvent returns an event in canonical form.
func SpellEvent(e Event) jsontext.Value { return spelled(e) }

func (c *ListTools) spell(o *canonical.Object) {
	o.Text("do", c.Do)
	o.Texts("servers", c.Servers)
}

func (c *Complete) spell(o *canonical.Object) {
	o.Text("do", c.Do)
	o.Digest("input", c.Input)
	o.Text("planner", c.Planner)
	o.Text("prompt", c.Prompt)
	o.Text("purpose", c.Purpose)
}

func (c *ReadHistory) spell(o *canonical.Object) {
	o.Text("do", c.Do)
	o.Objects("queries", len(c.Queries), func(o *canonical.Object, i int) {
		q := &c.Queries[i]
		o.Text("of", q.Of)
		o.Text("path", q.Path)
		o.Text("scope", q.Scope)
		o.Int("window", int(q.Window))
	})
	o.Bool("task", c.Task)
}

func (e *HistoryRead) spell(o *canonical.Object) {
	o.Objects("calls", len(e.Calls), func(o *canonical.Object, i int) { e.Calls[i].Spell(o) })
	o.Text("happened", e.Happened)
	o.Objects("values", len(e.Values), func(o *canonical.Object, i int) {
		a := &e.Values[i]
		o.Text("failed", a.Failed)
		o.Text("of", a.Of)
		o.Text("path", a.Path)
		o.Text("scope", a.Scope)
		o.Text("value", a.Value)
		o.Int("window", int(a.Window))
	})
}

func (c *AwaitDecision) spell(o *canonical.Object) {
	o.Digest("binding", c.Binding)
	o.Text("do", c.Do)
}

func (c *CallTool) spell(o *canonical.Object) {
	o.Digest("arguments", c.Arguments)
	o.Text("do", c.Do)
	o.Digest("permit", c.Permit)
	spellSome(o, "round", string(c.Round))
	o.Text("server", c.Server)
	o.Text("tool", c.Tool)
}

func (e *ToolsListed) spell(o *canonical.Object) {
	o.Text("happened", e.Happened)
	if e.Kept != nil {
		o.Object("kept", e.Kept.spell)
	}
	o.Objects("servers", len(e.Servers), func(o *canonical.Object, i int) { e.Servers[i].Spell(o) })
}

func (e *Completed) spell(o *canonical.Object) {
	o.Outside("content", e.Content)
	spellExchanges(o, e.Exchanges)
	o.Text("happened", e.Happened)
	if len(e.Refusal) > 0 {
		o.Outside("refusal", e.Refusal)
	}
}

func spellExchanges(o *canonical.Object, all []Exchange) {
	o.Objects("exchanges", len(all), func(o *canonical.Object, i int) {
		o.Outside("received", all[i].Received)
		o.Outside("sent", all[i].Sent)
		o.Int("status", all[i].Status)
	})
}

func (e *Decided) spell(o *canonical.Object) {
	o.Text("at", e.At)
	o.Digest("binding", e.Binding)
	o.Text("happened", e.Happened)
	o.Objects("votes", len(e.Votes), func(o *canonical.Object, i int) { e.Votes[i].Spell(o) })
}

func (e *ToolReturned) spell(o *canonical.Object) {
	o.Text("happened", e.Happened)
	o.Outside("result", e.Result)
}

func (e *EffectFailed) spell(o *canonical.Object) {
	o.Text("code", string(e.Code))
	o.Text("effect", string(e.Effect))
	if len(e.Exchanges) > 0 {
		spellExchanges(o, e.Exchanges)
	}
	o.Text("happened", e.Happened)
	o.Text("reason", e.Reason)
}

func (e *Interrupted) spell(o *canonical.Object) {
	o.Text("code", string(e.Code))
	o.Text("happened", e.Happened)
	o.Text("reason", e.Reason)
}

func (f *ScreenedFact) spell(o *canonical.Object) {
	o.Digest("bundle", f.Bundle)
	o.Digest("request", f.Request)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *DiscoveredFact) spell(o *canonical.Object) {
	o.Digest("catalog", f.Catalog)
	o.Objects("effective", len(f.Effective), func(o *canonical.Object, i int) {
		o.Digest("definition", f.Effective[i].Definition)
		o.Text("server", f.Effective[i].Server)
		o.Text("tool", f.Effective[i].Tool)
	})
	o.Objects("servers", len(f.Servers), func(o *canonical.Object, i int) {
		s := &f.Servers[i]
		o.Text("code", string(s.Code))
		o.Text("protocol", s.Protocol)
		o.Text("reason", s.Reason)
		o.Text("server", s.Server)
		o.Text("status", s.Status)
		o.Int("tools", s.Tools)
	})
}

func (f *PlannedFact) spell(o *canonical.Object) {
	o.Digest("catalog", f.Catalog)
	o.Digest("digest", f.Digest)
	o.Raw("plan", f.Plan)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *ValidatedFact) spell(o *canonical.Object) {
	o.Digest("arguments", f.Arguments)
	o.Digest("definition", f.Definition)
	o.Text("dialect", f.Dialect)
	o.Digest("plan", f.Plan)
	o.Text("server", f.Server)
	o.Text("tool", f.Tool)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *AuthorizedFact) spell(o *canonical.Object) {
	o.Digest("arguments", f.Arguments)
	o.Digest("bundle", f.Bundle)
	o.Digest("definition", f.Definition)
	spellSome(o, "history", string(f.History))
	o.Digest("plan", f.Plan)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *AssessedFact) spell(o *canonical.Object) {
	if len(f.Approvers) > 0 {
		o.Texts("approvers", f.Approvers)
	}
	o.Digest("arguments", f.Arguments)
	o.Digest("bundle", f.Bundle)
	spellSome(o, "condition", f.Condition)
	o.Digest("definition", f.Definition)
	o.Text("expires", f.Expires)
	o.Text("mode", f.Mode)
	o.Digest("plan", f.Plan)
	spellSome(o, "policy", f.Policy)
	if f.Quorum != 0 {
		o.Int("quorum", f.Quorum)
	}
	if len(f.Risk) > 0 {
		o.Objects("risk", len(f.Risk), func(o *canonical.Object, i int) { spellContribution(o, &f.Risk[i]) })
	}
	o.Int("score", f.Score)
	if len(f.Shadow) > 0 {
		o.Objects("shadow", len(f.Shadow), func(o *canonical.Object, i int) {
			o.Text("condition", f.Shadow[i].Condition)
			o.Text("effect", f.Shadow[i].Effect)
			o.Text("failed", f.Shadow[i].Failed)
			o.Text("policy", f.Shadow[i].Policy)
		})
	}
	o.Object("verdict", f.Verdict.Spell)
}

// spellSome writes a member that is left out where it is empty.
func spellSome(o *canonical.Object, name, value string) {
	if value != "" {
		o.Text(name, value)
	}
}

func spellContribution(o *canonical.Object, c *risk.Contribution) {
	o.Text("failed", c.Failed)
	o.Bool("matched", c.Matched)
	o.Text("mode", c.Mode)
	o.Text("reason", c.Reason)
	o.Text("rule", c.Rule)
	o.Int("score", c.Score)
}

func (f *HeldFact) spell(o *canonical.Object) {
	o.Digest("binding", f.Binding)
	o.Object("bound", f.Bound.spell)
	o.Text("reason", f.Reason)
}

func (b *Binding) spell(o *canonical.Object) {
	o.Text("actor", b.Actor)
	o.Digest("arguments", b.Arguments)
	o.Digest("bundle", b.Bundle)
	o.Digest("definition", b.Definition)
	o.Text("expires", b.Expires)
	o.Text("run", b.Run)
	o.Text("server", b.Server)
	o.Text("tool", b.Tool)
}

func (f *ApprovedFact) spell(o *canonical.Object) {
	o.Text("at", f.At)
	o.Digest("binding", f.Binding)
	o.Texts("by", f.By)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *PermittedFact) spell(o *canonical.Object) {
	o.Raw("arguments", f.Arguments)
	o.Object("assessed", f.Assessed.Spell)
	o.Digest("bundle", f.Bundle)
	o.Digest("definition", f.Definition)
	o.Digest("permit", f.Permit)
	o.Digest("plan", f.Plan)
	spellSome(o, "round", string(f.Round))
	o.Text("server", f.Server)
	o.Text("tool", f.Tool)
}

func (f *DispatchedFact) spell(o *canonical.Object) { o.Digest("permit", f.Permit) }

func (f *ExecutedFact) spell(o *canonical.Object) {
	o.Int("bytes", f.Bytes)
	o.Digest("permit", f.Permit)
	o.Digest("result", f.Result)
}

func (f *TypedFact) spell(o *canonical.Object) {
	o.Digest("definition", f.Definition)
	o.Digest("result", f.Result)
	o.Digest("structured", f.Structured)
	o.Object("verdict", f.Verdict.Spell)
}

func (f *SummarizedFact) spell(o *canonical.Object) {
	o.Objects("items", len(f.Items), func(o *canonical.Object, i int) { spellItem(o, &f.Items[i]) })
	o.Digest("structured", f.Structured)
	o.Object("verdict", f.Verdict.Spell)
}

func spellItem(o *canonical.Object, item *evidence.Located) {
	o.Object("at", func(o *canonical.Object) {
		o.Int("end", item.At.End)
		o.Text("pointer", item.At.Pointer)
		o.Int("start", item.At.Start)
	})
	o.Text("claim", item.Claim)
	o.Text("evidence", item.Evidence)
}

func (f *AnsweredFact) spell(o *canonical.Object) {
	o.Text("note", f.Note)
	o.Digest("result", f.Result)
}

func (f *AskedFact) spell(o *canonical.Object) {
	o.Text("answer", f.Answer)
	o.Digest("plan", f.Plan)
}

func (f *StoppedFact) spell(o *canonical.Object) {
	if f.Assessment != nil {
		o.Object("assessment", f.Assessment.spell)
	}
	o.Text("effect", string(f.Effect))
	o.Object("verdict", f.Verdict.Spell)
}

// Spell writes the request's members in canonical order.
func (r *Request) Spell(o *canonical.Object) {
	o.Text("actor", r.Actor)
	o.Text("at", r.At)
	o.Text("kind", r.Kind)
	if len(r.Round) > 0 {
		o.Outside("round", r.Round)
	}
	if r.Task != nil {
		o.Object("task", r.Task.Spell)
	}
	o.Outside("text", r.Text)
}

// Spell writes the outcome's members in canonical order.
func (o *Outcome) Spell(to *canonical.Object) {
	to.Text("code", string(o.Code))
	to.Text("effect", string(o.Effect))
	to.Text("gate", string(o.Gate))
	to.Text("note", o.Note)
	to.Text("reason", o.Reason)
	to.Text("state", o.State)
	to.Text("type", o.Type)
}
