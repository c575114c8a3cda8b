package screen

import (
	"slices"
	"sync"
)

const (
	// maxKept is how many screens are kept: a process meets the rules of its configuration, the defaults, and those of
	// a record or two.
	maxKept = 4
	// maxKeptSize bounds the states times classes of each, all scanners together. Those of Defaults have 900,000. A
	// stranger's rules may make more than thirty million, which nobody wants kept.
	maxKeptSize = 2 << 20
)

// A shelf keeps the screens that were compiled last, the last one used first, so that a process that compiles the same
// rules again and again does it once. What is kept is found by all of its rules, not by a digest, and is immutable: it
// makes no difference to any verdict.
type shelf struct {
	mu      sync.Mutex
	screens []*Screen
}

var kept shelf

// find returns the screen for exactly these rules, for requests of any size, or nil.
func (k *shelf) find(rules []Rule) *Screen {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.screens, func(s *Screen) bool { return slices.Equal(s.rules, rules) })
	if i < 0 {
		return nil
	}
	found := k.screens[i]
	copy(k.screens[1:i+1], k.screens[:i])
	k.screens[0] = found
	return found
}

// keep puts s in front. The one that was not used for longest has to go.
func (k *shelf) keep(s *Screen) {
	if s.size() > maxKeptSize {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.ContainsFunc(k.screens, func(old *Screen) bool { return slices.Equal(old.rules, s.rules) }) {
		return // another goroutine was as quick
	}
	if len(k.screens) < maxKept {
		k.screens = append(k.screens, nil)
	}
	copy(k.screens[1:], k.screens)
	k.screens[0] = s
}

// size is the states times classes of all scanners.
func (s *Screen) size() int {
	n := len(s.folded.next) + len(s.mapped.next)
	if s.ear != nil {
		n += len(s.ear.next)
	}
	return n
}
