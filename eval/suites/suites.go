// Package suites holds attacks of our own, each suite a folder in the neutral format of package eval: what servers offer
// (tools.json), what is needed and wanted of them (cases.jsonl), a configuration that an operator would write (pgfsm.yaml and
// what it names), and a README that says where the attack is from, what stops it and what still gets through.
//
// Every case states its expected outcome. An attack that still gets through is there as well: its id begins with [Remains]. The
// folders within a suite hold configurations that take its protection away, servers that show other tools, and grants.
//
// The files hold ASCII only: the hidden text of an attack is escaped, and readers of the file see it.
package suites

// Remains begins the ids of attacks that no gate stops.
const Remains = "remains-"

// Names lists the suites, each the name of its folder.
func Names() []string {
	return []string{"tool-poisoning", "parameter-smuggling", "parser-differentials", "confused-deputy", "approval-replay", "exfiltration"}
}
