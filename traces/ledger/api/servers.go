package api

import (
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/docdiff"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// Bounds of the page. Comparing a text of a definition can take some work.
const (
	maxTools   = 200 // for one server
	maxChanges = 40  // for all tools together
	diffLines  = 60
	diffWidth  = 100
)

type serversView struct {
	present.Servers
	Has     bool // this service has servers
	Listed  []serverView
	Changed int      // tools whose definition differs from the pinned one
	Named   []string // the first of them
	Unseen  []string // servers whose tools the service does not know
}

// A serverView is one server.
type serverView struct {
	present.Server
	Callable, Drifted int
	Shown             []toolView
	Others            int // tools that the page omits
}

// A toolView is one tool.
type toolView struct {
	present.ServerTool
	Differences []docdiff.Change
	Omitted     int  // omitted changes
	First       bool // the first tool of the page that drifted
}

// Hints describes what the server says about the tool.
func (t *toolView) Hints() string { return present.Hints(&t.Annotations) }

// readServers reads the servers as the service last saw them.
func (h *Handler) readServers(v *visit) (present.Servers, error) {
	var servers []present.Server
	note := "this service has no servers; these are the ones that runs of the ledger used"
	if h.Servers != nil {
		servers, note = h.Servers()
	}
	return readList(h, v, func(r ledger.Reader) (present.Servers, error) { return present.NewServers(r, servers, note) })
}

// showServers shows the servers and their tools.
func (h *Handler) showServers(v *visit) (answer, error) {
	all, err := h.readServers(v)
	if err != nil {
		return answer{}, err
	}
	if err := h.trying.Acquire(v.r.Context()); err != nil {
		return answer{}, err
	}
	defer h.trying.Release()

	body, left := serversView{Servers: all, Has: h.Servers != nil}, maxChanges
	for _, s := range all.Servers {
		shown := newServerView(s, &left)
		body.Listed = append(body.Listed, shown)
		body.Changed += shown.Drifted
		for i := range shown.Shown {
			if t := &shown.Shown[i]; t.Drifted && len(body.Named) < maxNamed {
				t.First = len(body.Named) == 0
				body.Named = append(body.Named, t.Tool.Name+" on "+s.Server)
			}
		}
		if s.Status != policy.ServerUp {
			body.Unseen = append(body.Unseen, s.Server)
		}
	}
	return h.page(v, "servers", view{Title: "Servers", Tab: "servers", CLI: "pgfsm tools", Body: body}), nil
}

// newServerView describes one server. left is the number of changes that may still be shown.
func newServerView(s present.Server, left *int) serverView {
	out := serverView{Server: s}
	for _, t := range s.Tools {
		if t.Allowed {
			out.Callable++
		}
		if t.Drifted {
			out.Drifted++
		}
	}
	var some []present.ServerTool
	tools := s.Tools
	if len(tools) > maxTools { // those that changed must not be among the omitted
		tools = slices.Clone(tools)
		slices.SortStableFunc(tools, func(a, b present.ServerTool) int { return driftRank(&a) - driftRank(&b) })
	}
	some, out.Others = firstOf(tools, maxTools)
	for _, t := range some {
		out.Shown = append(out.Shown, newToolView(t, left))
	}
	return out
}

func driftRank(t *present.ServerTool) int {
	if t.Drifted {
		return 0
	}
	return 1
}

func newToolView(t present.ServerTool, left *int) toolView {
	out := toolView{ServerTool: t}
	if !t.Drifted {
		return out
	}
	changes := t.Changes
	if !t.Stored {
		changes = []docdiff.Change{{Kind: docdiff.Added, New: jsontext.Value(t.Live)}}
	}
	out.Differences, out.Omitted = firstOf(changes, *left)
	*left -= len(out.Differences)
	return out
}

// diffRows returns the lines of a change of a definition.
func diffRows(c docdiff.Change) []docdiff.Row { return c.Rows(diffLines, diffWidth) }

// escapes matches a doubled backslash, which stands for itself, and the escapes of package visible
// and of JSON.
var escapes = regexp.MustCompile(`\\\\|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\x[0-9a-f]{2}`)

// splitEscapes splits a text at its escapes of invisible characters, so that the escapes can be
// marked.
func splitEscapes(s string) (all []piece) {
	start := 0
	for _, match := range escapes.FindAllStringIndex(s, -1) {
		if s[match[0]+1] == '\\' {
			continue
		}
		if start < match[0] {
			all = append(all, piece{Text: s[start:match[0]]})
		}
		all, start = append(all, piece{s[match[0]:match[1]], true}), match[1]
	}
	if start < len(s) {
		all = append(all, piece{Text: s[start:]})
	}
	return all
}

// askServers lists the tools of every server again, and then shows the page again.
func (h *Handler) askServers(v *visit) (answer, error) {
	if _, err := v.readForm(MaxBody); err != nil {
		return answer{}, err
	}
	if h.AskServers == nil {
		return answer{}, errForm
	}
	if err := h.trying.Acquire(v.r.Context()); err != nil {
		return answer{}, err
	}
	defer h.trying.Release()
	return redirectTo(v.base + "servers"), h.AskServers(v.r.Context())
}
