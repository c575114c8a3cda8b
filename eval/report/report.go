// Package report makes one page of what the other evaluations wrote into a folder: attacks (eval/attack), the gates alone
// (eval/gates), and pgfsm beside an agent without gates (eval/endtoend).
//
// The page is one HTML file that loads nothing and runs nothing, for a wide screen, a phone, a light and a dark viewer, and a
// Markdown file with the same figures as tables.
//
// # What is trusted
//
// Nothing of a file. Every text is bounded, written with its invisible characters as escapes, and escaped where it stands;
// figures that cannot be (5 of 3) are refused; rates and intervals are reckoned here, from counts. What is left out of a page
// for its length is counted there.
//
// # Reproduction
//
// A page holds no time of its making: the same files give the same bytes.
package report

import (
	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// machine is the machine that is drawn.
type machine struct {
	spec   *fsm.Spec
	digest canonical.Digest
}

func newMachine() (*machine, error) {
	m, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	return &machine{m.Spec(), m.Digest()}, nil
}

// HTML is the report as one self-contained page.
func (r *Results) HTML() ([]byte, error) {
	p, err := r.page()
	if err != nil {
		return nil, err
	}
	return p.html()
}

// Markdown is the report as tables.
func (r *Results) Markdown() ([]byte, error) {
	p, err := r.page()
	if err != nil {
		return nil, err
	}
	return p.markdown(), nil
}

// Missing says what the folder does not hold, and how it is made. It is empty if everything is there.
func (r *Results) Missing() (missing []string) {
	if len(r.attacks) == 0 {
		missing = append(missing, "There are no results of attacks: make them with pgfsm eval attack.")
	}
	if r.metrics == nil {
		missing = append(missing, "There are no results of end to end runs: make them with pgfsm eval e2e.")
	}
	if r.gates == nil {
		missing = append(missing, "There are no results of the gates alone: make them with pgfsm eval gates.")
	}
	return missing
}

func (r *Results) page() (*page, error) {
	p := &page{Title: "pgfsm: what the gates are worth"}
	p.Lead = append(p.Lead, "pgfsm lets a language model propose a tool call and decides, outside the model, whether it happens. "+
		"This page is what its evaluation found, failures included.")
	p.Lead = append(p.Lead, r.Missing()...)
	attacks, err := r.attackSections()
	if err != nil {
		return nil, err
	}
	p.Sections = attacks
	if r.metrics != nil {
		p.Sections = append(p.Sections, r.metrics.section())
	}
	if r.gates != nil {
		p.Sections = append(p.Sections, r.gates.section())
	}
	p.Sections = append(p.Sections, r.again())
	return p, nil
}

// attackSections are the sections about attacks. Each has a part for every group of files.
func (r *Results) attackSections() ([]section, error) {
	if len(r.attacks) == 0 {
		return nil, nil
	}
	m, err := newMachine()
	if err != nil {
		return nil, err
	}
	headline := section{ID: "headline", Title: "Attacks", Blocks: []block{{
		Para: "The planner is the attacker: what it proposes is exactly what the attack wants, and for each task exactly what the task needs. An attack " +
			"succeeds when all the calls that it wants were made. Each arm adds to the one before it.",
	}, {Table: armTable()}}}
	bars := section{ID: "arms", Title: "Attack success by arm"}
	stopped := section{ID: "stopped", Title: "Which gate stopped what"}
	paths := section{ID: "machine", Title: "Where in the machine attacks stop"}
	through := section{ID: "through", Title: "What still gets through"}
	for i := range r.attacks {
		f := &r.attacks[i]
		headline.Blocks = append(append(headline.Blocks, f.headline()...), f.faults()...)
		bars.Blocks = append(bars.Blocks, f.bars()...)
		stopped.Blocks = append(stopped.Blocks, f.stopped()...)
		drawn, err := f.paths(m)
		if err != nil {
			return nil, err
		}
		paths.Blocks = append(paths.Blocks, drawn...)
		through.Blocks = append(through.Blocks, f.through()...)
	}
	var all []section
	for _, s := range []section{headline, bars, stopped, paths, through} {
		if len(s.Blocks) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// again says how the figures are made, and of which files this page is.
func (r *Results) again() section {
	sources := table{Caption: "The files that this page is made of", Columns: words("file", "digest")}
	for i := range r.attacks {
		for _, src := range r.attacks[i].sources {
			sources.add(text(src.name), text(string(src.digest)))
		}
	}
	if r.metrics != nil {
		sources.add(text(r.metrics.name), text(string(r.metrics.digest)))
	}
	if r.gates != nil {
		sources.add(text(r.gates.name), text(string(r.gates.digest)))
	}
	commands := []string{
		"pgfsm eval gates -o DIR/offline_gate_eval.json",
		"pgfsm eval e2e --cases eval/cases_end_to_end.jsonl --dir DIR",
		"pgfsm eval import agentdojo AGENTDOJO -o CASES --bundles eval/agentdojo",
		"pgfsm eval attack --tools CASES/SUITE.tools.json --cases CASES/SUITE.cases.jsonl -o DIR/agentdojo-attack-SUITE.json",
		"pgfsm eval attack --tools eval/suites/SUITE/tools.json --cases eval/suites/SUITE/cases.jsonl --bundle eval/suites/SUITE/pgfsm.yaml " +
			"-o DIR/own-attack-SUITE.json",
		"pgfsm eval report DIR -o DIR/report.html --md DIR/report.md",
	}
	return section{ID: "again", Title: "How to make these figures again", Blocks: []block{
		{Para: "Figures of attacks and of the gates alone are the same bytes each time; those of end to end runs hold times."},
		{Commands: commands}, {Table: &sources},
	}}
}
