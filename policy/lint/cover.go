package lint

import (
	"strings"

	"pgfsm/policy/glob"
)

// Bounds of the search for a call that no policy above decides. Beyond them a policy counts as reachable.
const (
	maxSteps      = 1 << 25 // steps of one glob's automaton by one character, for all policies together
	maxOwnSteps   = 1 << 20 // for one name of one policy
	maxCandidates = 1024
	maxCombined   = 1 << 22 // combinations of three classes of names
)

// A candidate decides some of the calls that a policy matches.
type candidate struct {
	*entry
	how [3]relation // how the policy's tool, server and env stand to the candidate's
}

// covered reports whether the candidates together decide every call that the globs of e fit: whether the product of
// three sets of names is a part of a union of such products. It looks for a call outside.
//
// Names that the same candidates match make no difference, so for each of tool, server and env it finds the classes of
// names there are within e's glob, each as the set of the candidates that match it. A call is outside if its three sets
// have none in common; so only the smallest sets count.
func covered(e *entry, some []candidate, work *int) bool {
	if len(some) > maxCandidates || outside(e, some) {
		return false
	}
	var classes [3][]set
	for i, of := range [...]func(*entry) *pattern{toolOf, serverOf, envOf} {
		var ok bool
		if classes[i], ok = classesOf(of(e), some, i, of, work); !ok {
			return false
		}
	}
	if len(classes[0])*len(classes[1])*len(classes[2]) > maxCombined {
		return false
	}
	for _, a := range classes[0] {
		for _, b := range classes[1] {
			both := a.and(b)
			for _, c := range classes[2] {
				if both.and(c).empty() {
					return false
				}
			}
		}
	}
	return true
}

// outside tries the names that most often are outside: those of e's globs with nothing in the place of each `*`, or
// with much that no glob names. It finds out cheaply about nearly all policies that are reached.
func outside(e *entry, some []candidate) bool {
	strange := strangeTo(some)
	var names [3][2]string
	for i, p := range []*pattern{e.tool, e.server, e.env} {
		text := strings.ReplaceAll(p.String(), "?", strange)
		names[i][0] = strings.ReplaceAll(text, "*", strings.Repeat(strange, glob.MaxPattern+1))
		names[i][1] = strings.ReplaceAll(text, "*", "")
	}
	for which := range 8 {
		tool, server, env := names[0][which&1], names[1][which>>1&1], names[2][which>>2&1]
		hit := false
		for i := range some {
			c := &some[i]
			if hit = c.tool.Match(tool) && c.server.Match(server) && c.env.Match(env); hit {
				break
			}
		}
		if !hit {
			return true
		}
	}
	return false
}

// strangeTo returns a character that no glob of the candidates names.
func strangeTo(some []candidate) string {
	for r := '\ue000'; ; r++ {
		named := false
		for _, c := range some {
			named = named || strings.ContainsRune(c.tool.String()+c.server.String()+c.env.String(), r)
		}
		if !named {
			return string(r)
		}
	}
}

// classesOf returns the smallest sets of candidates that match a name of p.
func classesOf(p *pattern, some []candidate, i int, of func(*entry) *pattern, work *int) ([]set, bool) {
	var others []*pattern // those that match only some of p's names, each once
	index := map[*pattern]int{}
	for _, c := range some {
		if q := of(c.entry); c.how[i] == partly {
			if _, ok := index[q]; !ok {
				index[q] = len(others)
				others = append(others, q)
			}
		}
	}
	found, ok := smallest(p, others, work)
	if !ok {
		return nil, false
	}
	classes := make([]set, len(found))
	for k, matching := range found {
		class := newSet(len(some))
		for j, c := range some {
			if c.how[i] == within || matching.has(index[of(c.entry)]) {
				class.put(j)
			}
		}
		classes[k] = class
	}
	return classes, true
}

// A set holds small numbers.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) put(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) and(t set) set {
	out := make(set, len(s))
	for i := range s {
		out[i] = s[i] & t[i]
	}
	return out
}

func (s set) empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// in reports whether s is a part of t.
func (s set) in(t set) bool {
	for i := range s {
		if s[i]&^t[i] != 0 {
			return false
		}
	}
	return true
}
