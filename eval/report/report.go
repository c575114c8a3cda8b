// Package report makes one page from the results of the other evaluations in a folder: attacks (eval/attack), the gates alone
// (eval/gates), and pgfsm beside an agent without gates (eval/endtoend).
//
// The page is one HTML file that loads nothing and runs nothing, for wide and narrow screens, light and dark. A Markdown file has
// the same figures as tables.
//
// Texts of files are not trusted: the page bounds their length, makes invisible characters visible, and escapes them. Rates and
// Wilson's intervals are computed from counts. A table that is cut says how many rows it had.
//
// A page holds no time: the same files give the same bytes.
package report

import (
	"fmt"
	"strings"

	"pgfsm/eval"
	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
)

// machine is this version's machine.
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

// Write writes the page, and the Markdown version if md names a file. It makes both before it writes the first.
func (r *Results) Write(html, md string) error {
	page, err := r.HTML()
	if err != nil {
		return err
	}
	text, err := r.Markdown()
	if err != nil {
		return err
	}
	if err := eval.WriteFile(html, page); err != nil {
		return fmt.Errorf("the report could not be written to %s: %w", html, err)
	}
	if md == "" {
		return nil
	}
	if err := eval.WriteFile(md, text); err != nil {
		return fmt.Errorf("the report could not be written to %s: %w", md, err)
	}
	return nil
}

// Missing names the results that the folder does not have, with the command that makes them, and the JSON files that were left
// out.
func (r *Results) Missing() (missing []string) {
	if len(r.attacks) == 0 {
		missing = append(missing, "There are no results of attacks: make them with pgfsm-eval attack.")
	}
	if r.metrics == nil {
		missing = append(missing, "There are no results of end to end runs: make them with pgfsm-eval e2e.")
	}
	if r.gates == nil {
		missing = append(missing, "There are no results of the gates alone: make them with pgfsm-eval gates.")
	}
	for _, l := range r.notRead() {
		missing = append(missing, l+".")
	}
	return missing
}

func (r *Results) page() (*page, error) {
	p := &page{Title: "pgfsm: what the gates are worth"}
	p.Lead = append(p.Lead, "pgfsm lets a language model propose a tool call and decides, outside the model, whether it happens. "+
		"This page has the results of its evaluation, failures included.")
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

// attackSections are the sections about attacks, each with a part for every group of files.
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
			"succeeds when all the calls that it wants were made. Each arm up to grants adds to the one before it; the last two differ in who answers a held call.",
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
		paths.Blocks = append(paths.Blocks, f.paths(m)...)
		through.Blocks = append(through.Blocks, f.through()...)
	}
	var all []section
	for _, s := range []section{headline, through, bars, stopped, paths} {
		if len(s.Blocks) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// again lists the files of the page, and the commands that make such files in general form: a result does not name its tools and
// cases.
func (r *Results) again() section {
	sources := table{Caption: "The files of this page", Columns: words("file", "made by", "digest")}
	add := func(src source, by string) {
		sources.add(text(src.name), text("pgfsm-eval "+by), text(string(src.digest)))
	}
	var commands, says []string
	if len(r.attacks) > 0 {
		commands = append(commands, "pgfsm-eval attack --tools TOOLS.json --cases CASES.jsonl [--bundle BUNDLE.yaml] -o FILE.json")
		says = append(says, "Results of attacks are the same bytes each time, of the same tools, cases and bundle.")
	}
	for i := range r.attacks {
		for _, src := range r.attacks[i].sources {
			add(src, "attack")
		}
	}
	if r.metrics != nil {
		add(r.metrics.source, "e2e")
		commands = append(commands, "pgfsm-eval e2e --cases CASES.jsonl --dir DIR")
		says = append(says, "Results of end to end runs hold times, and differ in them.")
	}
	if r.gates != nil {
		add(r.gates.source, "gates")
		commands = append(commands, "pgfsm-eval gates -o DIR/"+gatesName)
		says = append(says, "Results of the gates alone are the same bytes each time.")
	}
	says = append(says, "In pgfsm's own repository, make eval makes the results that are published with it.")
	commands = append(commands, "pgfsm-eval report DIR -o report.html --md report.md")
	return section{ID: "again", Title: "How to make these figures again", Blocks: []block{
		{Para: strings.Join(says, " ")}, {Commands: commands}, {Table: &sources},
	}}
}
