package statestest

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
)

// Definition is the digest of the world's tool, as a pin holds it.
func Definition() canonical.Digest {
	tool, v := MustBundle(Content(), nil).Catalog("sha256:definition", Listings(Page)).Find(Server, Tool)
	if tool == nil {
		panic("statestest: " + v.Reason)
	}
	return tool.Digest
}

// Granted is a grant of the world's one tool.
func Granted(change func(*policy.Granted)) []policy.Grant {
	g := policy.Granted{Server: Server, Tool: Tool}
	change(&g)
	return []policy.Grant{{Name: "test", Tools: []policy.Granted{g}}}
}

func constraintAt(at, schema string) policy.Constraint {
	return policy.Constraint{At: at, Schema: jsontext.Value(schema)}
}

// narrowed are runs under pins and grants.
func narrowed() []Scenario {
	pinned := func(name string, state fsm.State, code policy.Code, calls int, d canonical.Digest) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Pins = []policy.Pin{{Definition: d, Server: Server, Tool: Tool}}
		})
	}
	granted := func(name string, state fsm.State, code policy.Code, calls int, change func(*policy.Granted)) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) { s.Content.Grants = Granted(change) })
	}
	counted := func(g *policy.Granted) { g.Calls = new(2) }
	id := func(schema string) func(*policy.Granted) {
		return func(g *policy.Granted) { g.Args = []policy.Constraint{constraintAt("/policy_id", schema)} }
	}
	ownSchemaCase := func(name string, state fsm.State, code policy.Code, calls int, schema string, pins ...policy.Pin) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Schemas, s.Content.Pins = []policy.ToolSchema{{Server: Server, Tool: Tool, Schema: jsontext.Value(schema)}}, pins
		})
	}
	pin := policy.Pin{Definition: Definition(), Server: Server, Tool: Tool}
	const ids = `{"type":"object","properties":{"policy_id":{"enum":["policy-002"]}}}`
	return []Scenario{
		ownSchemaCase("own-schema", states.Answered, "", 1, ids, pin),
		ownSchemaCase("own-schema-refuses", states.Blocked, policy.CodeArgumentsInvalid, 0, `{"type":"object","properties":{"policy_id":{"enum":["policy-001"]}}}`, pin),
		ownSchemaCase("own-schema-without-a-pin", states.Blocked, policy.CodeSchemaUnpinned, 0, ids),
		ownSchemaCase("own-schema-of-another-definition", states.Blocked, policy.CodeToolDefinitionChanged, 0, ids,
			policy.Pin{Definition: canonical.Sum("tool definition", []byte("{}")), Server: Server, Tool: Tool}),
		pinned("pinned-and-the-same", states.Answered, "", 1, Definition()),
		pinned("pinned-and-changed", states.Blocked, policy.CodeToolDefinitionChanged, 0, canonical.Sum("tool definition", []byte("{}"))),
		granted("granted", states.Answered, "", 1, func(*policy.Granted) {}),
		granted("granted-argument", states.Answered, "", 1, id(`{"const":"policy-002"}`)),
		granted("argument-not-granted", states.Blocked, policy.CodeArgumentsNotGranted, 0, id(`{"const":"policy-001"}`)),
		granted("argument-missing", states.Blocked, policy.CodeArgumentsNotGranted, 0,
			func(g *policy.Granted) { g.Args = []policy.Constraint{constraintAt("/lang", `{"enum":["en"]}`)} }),
		granted("tool-not-granted", states.Blocked, policy.CodeToolNotGranted, 0,
			func(g *policy.Granted) { g.Tool = Delete }),
		granted("counted-without-a-task", states.Blocked, policy.CodeGrantTaskMissing, 0, counted),
	}
}

// models are runs whose planner is a model.
func models() []Scenario {
	exchange := func(status int, received string) states.Exchange {
		return states.Exchange{Sent: canonical.Text(`{"model":"m"}`), Received: canonical.Text(received), Status: status}
	}
	said := func(text string) states.Exchange {
		return exchange(200, `{"choices":[{"message":{"content":`+string(canonical.AppendText(nil, text))+`}}]}`)
	}
	refuses := func(text string) states.Exchange {
		return exchange(200, `{"choices":[{"message":{"content":null,"refusal":`+string(canonical.AppendText(nil, text))+`}}]}`)
	}
	model := func(name string, state fsm.State, code policy.Code, calls int, change func(*Scenario)) Scenario {
		return variant(name, state, code, calls, func(s *Scenario) {
			s.Content.Planner = policy.Planner{Mode: policy.PlannerAuto, LLM: &policy.LLM{
				BaseURL: "http://127.0.0.1:1/v1", Model: "m", Timeout: 1000, MaxTokens: 512, Prompt: "test/v1",
			}}
			change(s)
		})
	}
	return []Scenario{
		model("model-plans", states.Answered, "", 1, func(s *Scenario) {
			s.World.Plan = &states.Completed{Content: canonical.Text(GoodPlan), Exchanges: []states.Exchange{exchange(400, "{}"), said(GoodPlan)}}
			s.World.Summary = &states.Completed{Content: canonical.Text(GoodSummary), Exchanges: []states.Exchange{said(GoodSummary)}}
		}),
		model("model-refuses", states.Blocked, policy.CodePlanEmpty, 0, func(s *Scenario) {
			s.World.Plan = &states.Completed{Refusal: canonical.Text("I cannot help with that."), Exchanges: []states.Exchange{refuses("I cannot help with that.")}}
		}),
		model("model-says-nothing", states.Blocked, policy.CodePlanEmpty, 0, func(s *Scenario) {
			s.World.Plan = &states.Completed{Exchanges: []states.Exchange{said("")}}
		}),
		model("model-gives-no-choice", states.Failed, policy.CodePlannerFailed, 0, func(s *Scenario) {
			s.World.Plan = &states.EffectFailed{
				Code: policy.CodePlannerFailed, Effect: states.NotSent, Exchanges: []states.Exchange{exchange(200, `{"choices":[]}`)},
				Reason: "No choice.",
			}
		}),
		model("summarizing-model-refuses", states.Answered, "", 1, func(s *Scenario) {
			s.World.Summary = &states.Completed{Refusal: canonical.Text("No."), Exchanges: []states.Exchange{refuses("No.")}}
			s.Note = `No summary (plan_empty): The model refused to answer: "No.".`
		}),
		model("summarizing-model-fails", states.Answered, "", 1, func(s *Scenario) {
			s.World.Summary = &states.EffectFailed{Code: policy.CodeTimeout, Exchanges: []states.Exchange{exchange(0, "")}, Reason: "Too slow."}
			s.Note = "No summary (deadline_exceeded)"
		}),
		model("tools-change-while-the-model-thinks", states.Blocked, policy.CodeToolDefinitionChanged, 0, func(s *Scenario) {
			s.Handler = func(states.EffectHandler) states.EffectHandler { return s.World.watched() }
		}),
	}
}

// watched is the world's handler with a watcher that reports changed tools.
func (w *World) watched() states.EffectHandler {
	return &states.Live{Watcher: changed{}, Tools: w, Completer: w, Caller: w, Approver: w}
}

type changed struct{}

// Changed reports a change.
func (changed) Changed() (string, bool) { return Server, true }
