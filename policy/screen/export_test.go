package screen

// Unfiltered returns s without prefilters: every pattern runs.
func Unfiltered(s *Screen) *Screen {
	c := *s
	for _, ps := range []**patterns{&c.folded, &c.mapped} {
		all := **ps
		all.filter = func() *prefilter {
			return &prefilter{nodes: make([]node, 1), patterns: make([][]int, len(all.list))}
		}
		*ps = &all
	}
	return &c
}

// AlwaysRuns counts the patterns of s that run whatever the text is.
func AlwaysRuns(s *Screen) int {
	return len(s.folded.filter().candidates("")) + len(s.mapped.filter().candidates(""))
}
