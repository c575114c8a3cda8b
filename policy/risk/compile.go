package risk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
)

// A Model is a [Content] ready to assess. It is immutable and safe for concurrent use. The zero
// Model gives every call the mode [Unknown] and [MaxScore].
type Model struct {
	modes   []Mode
	initial int
	vars    []variable
	rules   []rule
	byScore *[MaxScore + 1]step // for each score the entry that is true; nil: there is no set_mode_by_score

	programs condition.Programs
}

// Programs returns the expressions of variables and rules.
func (m *Model) Programs() condition.Programs {
	if m == nil {
		return nil
	}
	return m.programs
}

type variable struct {
	name    string
	program *condition.Program
}

type rule struct {
	id, reason string
	globs      condition.Globs
	args       *condition.Program // nil: no predicates
	setMode    int                // -1: it sets none
	escalate   bool
	score      *condition.Program // nil: it sets none
	usesVars   bool
}

// step is the result of set_mode_by_score for one score.
type step struct {
	level int // -1: nothing
	when  string
}

// Compile reads a risk model, whose expressions may read claims of these names. The error is
// [condition.Faults]. As in package rules, the schema of risk.yaml has the forms of names and
// texts.
func Compile(from Content, claims ...string) (*Model, error) {
	c := compiler{source: &from, model: &Model{}, claims: claims}
	c.compileModes()
	c.compileRules(c.compileVars())
	c.compileThresholds()
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return c.model, nil
}

type compiler struct {
	source *Content
	model  *Model
	claims []string
	faults condition.Faults
}

func (c *compiler) addFault(list string, index int, id, key string, err error) {
	if err != nil {
		c.faults = append(c.faults, condition.NewFault(list, index, id, key, err))
	}
}

// checkCount reports whether a list is within its bound.
func (c *compiler) checkCount(list string, n, most int) bool {
	if n > most {
		c.addFault(list, -1, "", "", fmt.Errorf("there are %d, more than %d", n, most))
	}
	return n <= most
}

func (c *compiler) compileModes() {
	modes := c.source.Modes
	if !c.checkCount("modes", len(modes), MaxModes) {
		return
	}
	if len(modes) == 0 {
		c.addFault("modes", -1, "", "", errors.New("there is none"))
		return
	}

	for i, m := range modes {
		fault := func(key string, err error) { c.addFault("modes", i, m.Name, key, err) }
		if c.levelOf(m.Name) < i {
			fault("name", errors.New("it stands twice"))
		}
		switch {
		case m.Baseline < 0 || m.Baseline > MaxScore:
			fault("baseline", fmt.Errorf("%d is not in 0 to %d", m.Baseline, MaxScore))
		case i > 0 && m.Baseline < modes[i-1].Baseline:
			fault("baseline", fmt.Errorf("%d is less than the %d of %q, a less strict mode", m.Baseline,
				modes[i-1].Baseline,
				modes[i-1].Name))
		}
	}

	c.model.modes = slices.Clone(modes)
	if c.model.initial = c.levelOf(c.source.Initial); c.model.initial < 0 {
		c.addFault("initial", -1, "", "", c.noMode(c.source.Initial))
	}
}

// levelOf returns the index of a mode, or -1.
func (c *compiler) levelOf(name string) int {
	return slices.IndexFunc(c.source.Modes, func(m Mode) bool { return m.Name == name })
}

func (c *compiler) noMode(name string) error {
	names := make([]string, 0, MaxModes)
	for _, m := range c.source.Modes[:min(len(c.source.Modes), MaxModes)] {
		names = append(names, visible.Cut(m.Name, 80, "…"))
	}
	return fmt.Errorf("there is no mode %q; the modes are %s", visible.Cut(name, 80, "…"), strings.Join(names, ", "))
}

// compileVars returns the names that expressions of rules may use.
func (c *compiler) compileVars() *condition.Env {
	env, err := condition.RiskEnv(nil, c.claims...)
	if err != nil || !c.checkCount("vars", len(c.source.Vars), MaxVars) {
		c.addFault("vars", -1, "", "", err)
		return nil
	}
	var names []string
	for i, v := range c.source.Vars {
		program, err := env.Number(v.Expr)
		c.addFault("vars", i, v.Name, "expr", err)
		// The next variables may use this one.
		wider, err := condition.RiskEnv(append(slices.Clone(names), v.Name), c.claims...)
		if err != nil {
			c.addFault("vars", i, v.Name, "name", err)
			continue
		}
		env, names = wider, append(names, v.Name)
		c.model.vars = append(c.model.vars, variable{v.Name, program})
		c.model.programs.Add("vars", i, "expr", condition.Globs{}, program)
	}
	return env
}

func (c *compiler) compileRules(env *condition.Env) {
	if env == nil || !c.checkCount("rules", len(c.source.Rules), MaxRules) {
		return
	}

	ids := make(map[string]bool, len(c.source.Rules))
	for i := range c.source.Rules {
		source := &c.source.Rules[i]
		fault := func(key string, err error) { c.addFault("rules", i, source.ID, key, err) }
		fault("id", checkID(source.ID, ids))
		ids[source.ID] = true
		r := rule{id: source.ID, reason: source.Reason, setMode: -1, escalate: source.Escalate}
		r.globs = source.Match.Compile(fault)
		if source.SetMode == "" && !source.Escalate && source.ScoreExpr == "" {
			fault("", errors.New("it does nothing; it needs set_mode, escalate or score_expr"))
		}

		if source.SetMode != "" {
			if r.setMode = c.levelOf(source.SetMode); r.setMode < 0 {
				fault("set_mode", c.noMode(source.SetMode))
			}
		}

		if source.ScoreExpr != "" {
			program, err := env.Number(source.ScoreExpr)
			fault("score_expr", err)
			r.score, r.usesVars = program, strings.Contains(source.ScoreExpr, "vars")
		}

		if len(source.Args) > MaxPredicates {
			fault("args", fmt.Errorf("there are %d, more than %d", len(source.Args), MaxPredicates))
			continue
		}

		r.args = env.Predicates(source.Args, fault)
		c.model.rules = append(c.model.rules, r)
		c.model.programs.Add("rules", i, "score_expr", r.globs, r.score)
	}
}

func checkID(id string, seen map[string]bool) error {
	switch {
	case id == "":
		return errors.New("it is empty")
	case id == ByScore:
		return errors.New("this name stands for set_mode_by_score in what is recorded")
	case seen[id]:
		return errors.New("it stands twice")
	}
	return nil
}

// compileThresholds computes set_mode_by_score for every score.
func (c *compiler) compileThresholds() {
	list := c.source.ModeByScore
	if len(list) == 0 || !c.checkCount(ByScore, len(list), MaxThresholds) {
		return
	}

	env, err := condition.ScoreEnv()
	if err != nil {
		c.addFault(ByScore, -1, "", "", err)
		return
	}
	programs, levels := make([]*condition.Program, len(list)), make([]int, len(list))

	for i, t := range list {
		if levels[i] = c.levelOf(t.Mode); levels[i] < 0 {
			c.addFault(ByScore, i, "", "mode", c.noMode(t.Mode))
		}
		programs[i], err = readThreshold(env, t.When)
		c.addFault(ByScore, i, t.Mode, "when", err)
	}

	// The table needs programs and modes without a fault.
	if len(c.faults) > 0 {
		return
	}

	table, won := new([MaxScore + 1]step), make([]bool, len(list))
	subject := condition.NewSubject(&condition.Input{})

	for score := range table {
		table[score] = step{level: -1}
		subject.WithScore(float64(score))
		for i, p := range programs {
			holds, err := p.True(subject)
			if err != nil {
				c.addFault(ByScore, i, list[i].Mode, "when", fmt.Errorf("it fails for the score %d: %w", score, err))
				return
			}
			if holds {
				table[score], won[i] = step{levels[i], list[i].When}, true
				break
			}
		}
		if score > 0 && table[score].level < table[score-1].level {
			c.addFault(ByScore, -1, "", "", fmt.Errorf(
				"the score %d would give a less strict mode than the score %d", score, score-1))
			return
		}
	}

	// An entry that never decides is hidden by those before it.
	for i, t := range list {
		if !won[i] {
			c.addFault(ByScore, i, t.Mode, "when", fmt.Errorf(
				"for no score from 0 to %d is it the first that is true; put the most severe mode first", MaxScore))
		}
	}

	c.model.byScore = table
}

// readThreshold refuses lists and maps: without them, an expression has no loops, so evaluating it
// for every score is cheap.
func readThreshold(env *condition.Env, when string) (*condition.Program, error) {
	if strings.ContainsAny(when, "[{") {
		return nil, errors.New("a list or a map has no place here; compare score")
	}
	return env.Bool(when)
}
