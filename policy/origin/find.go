package origin

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Roles of arguments.
const (
	Target  = "target"
	Amount  = "amount"
	Content = "content"
)

// Origins of leaves.
const (
	Request = "request"
	Trusted = "trusted"
	Own     = "own"
	None    = "none"
)

// Bounds of a search. Beyond them a call is not found.
const (
	MaxLeaves = 256        // leaves with a role, and leaves without one
	MaxSteps  = 25_000_000 // steps of about a nanosecond, because all other writers of a ledger wait for a search
)

// A Leaf is a scalar of the arguments, or a member's name, and where it comes from. Its members are in canonical order.
type Leaf struct {
	At     string `json:"at"` // JSON pointer in the arguments
	End    int    `json:"end,omitzero"`
	Exempt bool   `json:"exempt,omitzero"` // null, boolean or member of an enum, and no target: needs no origin
	Form   string `json:"form,omitzero"`   // which of the six forms; empty: as it stands
	Name   bool   `json:"name,omitzero"`   // the leaf is the name of that member, not its value
	Origin string `json:"origin"`          // request, trusted, own or none
	Place  string `json:"place,omitzero"`  // JSON pointer in the result
	Role   string `json:"role,omitzero"`   // target, amount, content or empty
	Source string `json:"source,omitzero"` // the result's Run, or entry of the prompt
	Start  int    `json:"start,omitzero"`  // bytes of the prompt, to End
}

// Find returns the leaves of a call's arguments in canonical order and where each comes from. At most MaxLeaves+1
// leaves with a role and as many without are returned. Arguments that are no JSON object are one target of origin none.
// So is a search that fails: Failed of the session then says why.
func (r *Rules) Find(s *Session, server, tool string, args, inputSchema jsontext.Value) []Leaf {
	f := &finder{rules: r, session: s, schema: schemaReader{root: inputSchema}}
	if r != nil {
		f.roles = r.roles[toolName{server, tool}]
	}
	if s != nil {
		var prompts PromptLabel
		if r != nil {
			prompts = r.prompts
		}
		f.passages = f.passagesOf(prompts)
		f.places = make([][]place, len(s.Results))
		s.Failed = ""
	}

	doc, err := canonical.JSON(args)
	if err == nil && jsontext.Value(doc).Kind() == '{' {
		err = eachNode(doc, f.addNode)
		if err == nil && f.succeeded() {
			return f.leaves
		}
	}
	return []Leaf{{Role: Target, Origin: None}}
}

// A finder looks for the leaves of one call.
type finder struct {
	rules     *Rules
	session   *Session
	schema    schemaReader
	roles     []rolePath
	passages  []passage
	places    [][]place // by result, once they were needed
	sent      []Sent
	asked     bool            // for sent
	sentSteps int             // to look for a text in what was sent
	returned  map[int64]int64 // by the entry at which a call was judged: that at which its result came
	echoes    map[question]bool
	leaves    []Leaf
	counts    [2]int // of leaves without and with a role
	steps     int
}

// spend counts steps, and reports whether the search may go on.
func (f *finder) spend(steps int) bool {
	f.steps += steps
	return f.steps <= MaxSteps
}

// succeeded reports whether the search has come to its end, and notes in the session why not.
func (f *finder) succeeded() bool {
	if f.session != nil && f.session.Failed == "" && f.steps > MaxSteps {
		f.session.Failed = fmt.Sprintf("there is too much to compare: the search takes more than %d steps", MaxSteps)
	}
	return f.session == nil || f.session.Failed == ""
}

// addNode adds the leaves of a node of the arguments: the name of a member, and a scalar.
func (f *finder) addNode(path []string, isMember bool, node jsontext.Value) bool {
	if len(path) == 0 {
		return true
	}
	if isMember && f.isChosenName(path) && f.countLeaf(Target) {
		name, of := path[len(path)-1], path[:len(path)-1]
		f.addLeaf(Leaf{At: pointerOf(path), Name: true, Role: Target}, f.newValue(name, Target, wordsOf(of), false))
	}
	role := roleIn(f.roles, path)
	if role == "" && f.endsAboveTarget(path, node) {
		role = Target
	}
	if isContainer(node) && len(path) < MaxDepth || !f.countLeaf(role) {
		return true
	}

	leaf := Leaf{At: pointerOf(path), Role: role}
	text, isText := scalarText(node)
	switch {
	case isContainer(node): // what is below is not looked at, and so is not found
		f.addLeaf(leaf, nil)
	case isText:
		leaf.Exempt = role != Target && f.schema.isEnumMember(path, node)
		f.addLeaf(leaf, f.newValue(text, role, wordsOf(path), false))
	case node.Kind() == 'n':
		leaf.Exempt = role != Target
		f.addLeaf(leaf, nil)
	default:
		leaf.Exempt = role != Target
		f.addLeaf(leaf, f.newValue(string(node), role, wordsOf(path), true))
	}
	return true
}

// countLeaf reports whether one more leaf is looked for.
func (f *finder) countLeaf(role string) bool {
	count := &f.counts[0]
	if role != "" {
		count = &f.counts[1]
	}
	*count++
	return *count <= MaxLeaves+1
}

// RoleOf returns the role of an argument: target before amount before content; empty if it has none.
func (r *Rules) RoleOf(server, tool string, path []string) string {
	if r == nil {
		return ""
	}
	return roleIn(r.roles[toolName{server, tool}], path)
}

func roleIn(roles []rolePath, path []string) string {
	for _, r := range roles { // compiled in this order
		if r.path.matches(path) {
			return r.role
		}
	}
	return ""
}

// endsAboveTarget reports whether a scalar stands where a target is expected below, as "a" for the path to.*; null is as
// good as no value.
func (f *finder) endsAboveTarget(path []string, node jsontext.Value) bool {
	return !isContainer(node) && node.Kind() != 'n' && slices.ContainsFunc(f.roles, func(r rolePath) bool {
		return r.role == Target && len(path) < len(r.path) && r.path[:len(path)].matches(path)
	})
}

// isChosenName reports whether the last name of path was chosen by the caller and belongs to a target: the schema does
// not declare it, and its object is at or below a target, or * matches it.
func (f *finder) isChosenName(path []string) bool {
	last := len(path) - 1
	return slices.ContainsFunc(f.roles, func(r rolePath) bool {
		matched := last < len(r.path) && r.path[last] == "*" && r.path[:last].matches(path)
		return r.role == Target && (matched || r.path.matches(path[:last]))
	}) && !f.schema.isDeclared(path)
}

// addLeaf finds the value and adds the leaf.
func (f *finder) addLeaf(leaf Leaf, v *value) {
	leaf.Origin = None
	if v != nil && v.text != "" && f.session != nil && f.succeeded() {
		f.findValue(&leaf, v)
	}
	f.leaves = append(f.leaves, leaf)
}

// findValue sets the origin of a leaf: the first that applies, as the value stands and then in a form.
func (f *finder) findValue(leaf *Leaf, v *value) {
	if f.findRequest(leaf, v, false) {
		return
	}
	var hits []hit
	if !v.bool {
		hits = f.withoutEchoes(v, f.hitsOf(v))
	}
	if leaf.takeHit(hits, false) || f.findRequest(leaf, v, true) {
		return
	}
	leaf.takeHit(hits, true)
}

// findRequest looks for the value in the prompts.
func (f *finder) findRequest(leaf *Leaf, v *value, forms bool) bool {
	if !v.inForm {
		return false
	}
	for i := range f.passages {
		p := &f.passages[i]
		if !f.spend(2*len(p.text)*v.scans/scansInStep + 64) {
			return false
		}
		at, form, ok := v.findIn(p, forms)
		if !ok {
			continue
		}
		from, to := at.start, at.end
		if p.text != p.raw {
			written := foldText(p.raw)
			if written.text != p.text {
				continue // there is no evidence
			}
			from, to = written.from[at.start], written.to[at.end-1]
		}
		leaf.Origin, leaf.Source, leaf.Form = Request, strconv.FormatInt(p.prompt.Entry, 10), form
		leaf.Start, leaf.End = p.start+from, p.start+to
		return true
	}
	return false
}

// byStrength are the origins, the strongest first.
var byStrength = []string{Request, Trusted, Own, None}

// Found reports whether a call needs nobody: whether the weakest origin of its targets, or of each path, is not none.
func Found(leaves []Leaf, paths ...string) bool { return Weakest(leaves, paths...) != None }

// Weakest returns the weakest origin of the targets of a call; with paths, of what each of them covers. The order is
// request, trusted, own, none. Leaves that need no origin and have none are passed over; where no other is left, and for
// calls with more than [MaxLeaves] leaves, the answer is none. Paths are as for [CheckPath].
func Weakest(leaves []Leaf, paths ...string) string {
	var counts [2]int
	for _, leaf := range leaves {
		if leaf.Role != "" {
			counts[1]++
		} else {
			counts[0]++
		}
	}
	if counts[1] > MaxLeaves || len(paths) > 0 && counts[0] > MaxLeaves {
		return None
	}

	if len(paths) == 0 {
		return byStrength[weakestOf(leaves, func(leaf *Leaf) bool { return leaf.Role == Target })]
	}
	weakest := 0
	for _, path := range paths {
		p, problem, _ := compileArgument(path)
		if problem != "" {
			return None
		}
		weakest = max(weakest, weakestOf(leaves, func(leaf *Leaf) bool { return p.matches(splitPointer(leaf.At)) }))
	}
	return byStrength[weakest]
}

// weakestOf returns the index in byStrength of the weakest origin of the selected leaves.
func weakestOf(leaves []Leaf, selected func(*Leaf) bool) int {
	none, weakest := len(byStrength)-1, -1
	for i := range leaves {
		leaf := &leaves[i]
		if !selected(leaf) {
			continue
		}
		at := slices.Index(byStrength, leaf.Origin)
		switch {
		case at >= 0 && at < none:
			weakest = max(weakest, at)
		case !leaf.Exempt:
			return none
		}
	}
	if weakest < 0 {
		return none
	}
	return weakest
}

// Assume gives an origin to each leaf that a path covers, and returns how many there are. It is for tests of policies.
func Assume(leaves []Leaf, path, origin string) (covered int) {
	p, problem, _ := compileArgument(path)
	for i := range leaves {
		if problem == "" && p.matches(splitPointer(leaves[i].At)) {
			leaves[i].Origin = origin
			covered++
		}
	}
	return covered
}

// CheckPath returns why a text is no path of arguments: names with / between them, in which * stands for any index or
// member. A path covers all that is below it.
func CheckPath(path string) (problem, remedy string) {
	_, problem, remedy = compileArgument(path)
	return problem, remedy
}

func compileArgument(path string) (p pattern, problem, remedy string) {
	p = splitPointer("/" + path)
	if !jsontext.Pointer("/"+path).IsValid() || slices.Contains(p, "") {
		return nil, fmt.Sprintf("%q is no path", path), "write names with / between, such as items/*/id, and ~0 for ~"
	}
	problem, remedy = p.checkDepth()
	return p, problem, remedy
}
