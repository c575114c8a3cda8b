package present

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// MaxGist bounds the arguments of a [Gist].
const MaxGist = 4

// A Gist has the arguments of a held call that matter most to a list of calls.
type Gist struct {
	Arguments []Argument
	More      int      // arguments that the gist omits
	Unlisted  bool     // there are further ones, which are not counted
	Rules     []string // the risk rules that matched
}

// A GistReader reads the gists of several calls.
type GistReader struct {
	r       ledger.Reader
	active  *policy.Content
	compare map[[2]string]*ledger.RunRow // the last approved call, by server and tool; nil: there is none
}

// NewGistReader returns a reader of gists. The active bundle's content sets the order of arguments;
// nil is none.
func NewGistReader(r ledger.Reader, active *policy.Content) *GistReader {
	return &GistReader{r, active, make(map[[2]string]*ledger.RunRow)}
}

// Read reads the gist of a call with these arguments.
func (g *GistReader) Read(run *Run, doc jsontext.Value) (gist Gist, err error) {
	if gist.Rules, err = RiskRules(g.r, run.Run); err != nil {
		return gist, err
	}
	last, err := g.lastApproved(run)
	if err != nil {
		return gist, err
	}
	args, err := ReadArguments(g.r, doc, last)
	if err != nil {
		return gist, err
	}
	gist.Arguments = sortGist(args.Values, g.conditions(run, gist.Rules))
	gist.Unlisted = args.More
	most := min(len(gist.Arguments), MaxGist)
	gist.Arguments, gist.More = gist.Arguments[:most], len(gist.Arguments)-most
	return gist, nil
}

// lastApproved reads the last approved call of a call's tool, once for each tool.
func (g *GistReader) lastApproved(run *Run) (last *ledger.RunRow, err error) {
	key := [2]string{run.Server, run.Tool}
	last, known := g.compare[key]
	if known {
		return last, nil
	}
	last, err = LastApproved(g.r, run)
	g.compare[key] = last
	return last, err
}

// judgedArgument finds the arguments that a condition names, for the order of the gist only.
var judgedArgument = regexp.MustCompile(`\bargs\.([A-Za-z_][A-Za-z0-9_]*)`)

// conditions returns the conditions that led to the hold, as far as the active bundle has them.
func (g *GistReader) conditions(run *Run, rules []string) string {
	var text strings.Builder
	if g.active == nil {
		return ""
	}
	if g.active.Policy != nil {
		for k := range g.active.Policy.Policies {
			if p := &g.active.Policy.Policies[k]; p.ID == run.Policy {
				fmt.Fprintln(&text, p.When, p.RequireApprovalIf)
			}
		}
	}
	if g.active.Risk != nil {
		for k := range g.active.Risk.Rules {
			if rule := &g.active.Risk.Rules[k]; slices.Contains(rules, rule.ID) {
				fmt.Fprintln(&text, rule.ScoreExpr)
				for _, p := range rule.Args {
					fmt.Fprintln(&text, "args."+strings.TrimPrefix(p.Path, "/"))
				}
			}
		}
	}
	return text.String()
}

// sortGist puts the arguments that matter most first: those that conditions name, then those that
// differ, then the others, each in the order of the call.
func sortGist(all []Argument, conditions string) []Argument {
	var named []string
	for _, match := range judgedArgument.FindAllStringSubmatch(conditions, -1) {
		named = append(named, match[1])
	}
	rank := func(a *Argument) int {
		switch {
		case slices.Contains(named, a.Name()):
			return 0
		case a.Change != "":
			return 1
		}
		return 2
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Argument) int { return cmp.Compare(rank(&a), rank(&b)) })
	return all
}
