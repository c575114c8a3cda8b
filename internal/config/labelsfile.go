package config

import (
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/origin"
)

// ReadLabels reads a file of labels: strict YAML, or strict JSON if its name ends in ".json". The
// error is of type [Errors], and includes the faults of [policy.CompileLabels]. Conditions may read
// the given claims.
func ReadLabels(name string, text []byte, claims ...string) (*origin.Labels, *Places, error) {
	f, err := readJudged(name, text, labelsSchema(), MaxPolicyFileBytes, "write version: 1 and tools: []")
	if err != nil {
		return nil, nil, err
	}
	var labels origin.Labels
	decode(f.root, &labels)

	_, _, err = policy.CompileLabels(&labels, claims...)
	places := &Places{file: f}
	places.noteFaults(err, nil)
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	return &labels, places, nil
}

// warnUnknownLabels warns about labels of servers that are not configured, and of tools that are not
// on the allowlist.
func (l *loader) warnUnknownLabels() {
	places := l.out.LabelPlaces
	if places == nil {
		return
	}
	for _, list := range []string{"tools", "roles"} {
		for _, entry := range places.file.root.membersOf(list) {
			server, tool := entry.value.get("server"), entry.value.get("tool")
			listed := func(a policy.Allowance) bool { return a.Server == server.text && slices.Contains(a.Tools, tool.text) }
			switch {
			case l.Servers.index(server.text) < 0:
				l.warnUnknownServer(places.file, server.at, server.text)
			case l.out.Closed == nil && !slices.ContainsFunc(l.out.Content.Allowlist, listed):
				l.addWarning(places.file, tool.at, "the allowlist names no tool %s of server %s", quote(tool.text), quote(server.text))
			}
		}
	}
}
