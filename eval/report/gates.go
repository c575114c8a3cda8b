package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval/gates"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// decodeGates reads the suites in the order of the file.
func decodeGates(doc []byte) (suites []gates.Suite, err error) {
	if err := canonical.Check(doc, policy.MaxJSONDepth); err != nil { // also for duplicate names
		return nil, err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.New("it is not a JSON object")
	}
	known := gates.Names()
	for dec.PeekKind() != '}' {
		var name string
		if err := json.UnmarshalDecode(dec, &name); err != nil {
			return nil, err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no suite %q", show(name))
		}
		s := gates.Suite{Name: name}
		if err := canonical.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		suites = append(suites, s)
	}
	if _, err := dec.ReadToken(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(suites) == 0 {
		return nil, errors.New("it holds no suite")
	}
	return suites, nil
}

// section shows the results of the gates alone.
func (f *gatesFile) section() section {
	all := table{
		Caption: "What came of each suite",
		Columns: slices.Concat(words("suite"), numbers("cases", "as expected", "slips"), words("what was counted")),
	}
	slips := table{Caption: "Slips", Columns: words("suite and case", "input", "expected", "came")}
	var blocks []block
	slipped := 0
	for i := range f.suites {
		s := &f.suites[i]
		slipped += s.Slips
		all.add(text(s.Name), number(s.Cases), number(s.Passed), number(s.Slips), text(show(s.Counted)))
		for _, x := range s.Slipped {
			slips.add(text(s.Name+": "+show(x.ID)), text(show(x.Input)), text(show(x.Want)), text(show(x.Got)))
		}
		if len(s.Classes) > 0 {
			blocks = append(blocks, block{Folded: classes(s)})
		}
	}
	verdict := "No gate gave a wrong answer."
	if slipped > 0 {
		verdict = plural(slipped, "case", "cases") + " got a wrong answer."
		slips.cut()
		blocks = slices.Concat([]block{{Table: &slips}}, blocks)
	}
	lead := block{Para: "Each suite takes one gate, or the machine around the gates, through cases whose right answer is known, without a model and " +
		"without servers. " + verdict}
	return section{ID: "gates", Title: "The gates alone", Blocks: slices.Concat([]block{lead, {Table: &all}}, blocks)}
}

// classes is the table of a suite that generates its cases.
func classes(s *gates.Suite) *table {
	t := table{
		Caption: fmt.Sprintf("%s: %d cases in %s, %s", s.Name, s.Cases, plural(len(s.Classes), "class", "classes"), plural(s.Slips, "slip", "slips")),
		Columns: slices.Concat(words("class"), numbers("cases", "allowed", "asked back", "blocked", "slips")),
	}
	if s.Seed != nil {
		t.Caption += ", seed " + strconv.FormatUint(*s.Seed, 10)
	}
	if s.BlockedByAllowlist != nil {
		t.Caption += "; " + strconv.Itoa(*s.BlockedByAllowlist) + " were blocked by the allowlist"
	}
	for _, c := range s.Classes {
		t.add(text(show(c.Class)), number(c.Cases), number(c.Allowed), number(c.Asked), number(c.Blocked), number(c.Slips))
	}
	t.cut()
	return &t
}
