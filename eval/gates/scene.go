package gates

import (
	"fmt"
	"slices"

	"pgfsm/eval"
	"pgfsm/eval/world"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/corpus"
	"pgfsm/states"
)

// The plain world has two servers, each with a tool that the operator allows and one that the
// operator does not allow. The second server also lists a tool with the name of the first server's
// tool, which is not allowed there.
const (
	serverKB   = "kb"
	serverDesk = "desk"
	toolFetch  = "fetch_entry"
	toolSearch = "search_tickets"
)

// The request of every run. It is fixed, because the result must be the same every time.
const (
	question = "Find what entry-002 says about laptops, in English, please"
	asked    = "2026-11-21T09:00:00.000Z"
	runID    = "01890a5d-ac96-774b-bcce-b302099a8057"
)

// plainContent is the operator's configuration.
func plainContent() policy.Content {
	return policy.Content{
		Format: policy.ContentFormat,
		Env:    "eval",
		Servers: []policy.Server{
			{Name: serverKB, Type: "http", URL: "http://127.0.0.1:1/mcp", Timeout: policy.DefaultTimeout},
			{Name: serverDesk, Type: "http", URL: "http://127.0.0.1:2/mcp", Timeout: policy.DefaultTimeout},
		},
		Allowlist: []policy.Allowance{
			{Server: serverKB, Tools: []string{toolFetch}}, {Server: serverDesk, Tools: []string{toolSearch}},
		},
		Input:   policy.Input{MaxBytes: policy.DefaultInputBytes, Rules: policy.DefaultRules()},
		Planner: policy.Planner{Mode: policy.PlannerAuto},
		Summary: policy.SummaryNever,
		Limits:  policy.DefaultLimits(),
	}
}

// A scene is a run that has not begun, and what it meets.
type scene struct {
	run     string // its id
	bundle  *policy.Bundle
	listing *states.ToolsListed
	request states.Request
	before  []eval.Target // calls of the run's task
}

// newScene makes the scene of the plain world as the worlds change it, one after the other.
func newScene(worlds ...corpus.World) (*scene, error) {
	s := &scene{run: runID, request: states.Request{
		Actor: policy.LocalUser + "alice",
		At:    asked,
		Kind:  states.KindAsk,
		Text:  canonical.Text(question),
	}}

	c := plainContent()
	page, down := corpus.Document("kb"), false

	for _, w := range worlds {
		if err := overlayMembers(&c, w.Content); err != nil {
			return nil, err
		}
		if err := overlayMembers(&s.request, w.Request); err != nil {
			return nil, err
		}
		var err error
		if page, err = w.Page(page); err != nil {
			return nil, err
		}
		down = down || w.Down
		s.before = append(s.before, slices.Repeat([]eval.Target{{Server: serverKB, Tool: toolFetch}}, w.Before)...)
	}

	kb := world.Listing(serverKB, []byte(page))
	if down {
		kb = world.DownListing(serverKB, "Connection refused.")
	}

	desk := world.Listing(serverDesk, []byte(corpus.Document("desk")))
	s.listing = states.Shared(&states.ToolsListed{Servers: []policy.Listing{kb, desk}})
	var err error
	s.bundle, err = policy.Compile(c)

	return s, err
}

// overlayMembers replaces the members of value that doc names. doc may be empty.
func overlayMembers(value any, doc []byte) error {
	if len(doc) == 0 {
		return nil
	}
	return canonical.Unmarshal(doc, value)
}

// newRun makes the run of a plan, and its world.
func (s *scene) newRun(plan []byte) (*states.Run, *world.World) {
	request := s.request
	if request.Kind != states.KindAsk {
		request.Text = canonical.Text(plan)
	}
	w := &world.World{
		Listings: []*states.ToolsListed{s.listing},
		Plan:     plan,
		Result:   []byte(`{"content":[]}`),
		Before:   s.before,
	}
	return states.NewRun(s.run, request, s.bundle), w
}

// newScenes makes the scene of each world of the corpus.
func newScenes() (map[string]*scene, error) {
	worlds, err := corpus.Worlds()
	if err != nil {
		return nil, err
	}
	scenes := make(map[string]*scene)
	for name, w := range worlds {
		if scenes[name], err = newScene(w); err != nil {
			return nil, fmt.Errorf("the world %q: %w", name, err)
		}
	}
	return scenes, nil
}
