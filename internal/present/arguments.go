package present

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

// Bounds of the listed arguments. [Arguments.Raw] has all.
const (
	maxValues     = 500
	maxValueBytes = 256 << 10
)

// An Argument is one value in the arguments of a call, without values below it.
type Argument struct {
	Pointer string // RFC 6901
	Kind    string // text, number, …
	Text    string // content of a string
	Change  Change // difference from the call with which it was compared
	Was     string // text of a changed argument in that call
	From    string // where the value comes from; empty: unknown, or it needs no origin
	Nowhere bool   // it comes from nowhere, and matters
}

// A Change is a difference between two calls.
type Change string

// The differences. The zero value is none.
const (
	Changed Change = "changed"
	New     Change = "new"  // only the later call has the argument
	Gone    Change = "gone" // only the earlier one had it
)

// Name returns the argument's name for people. A value inside another has its JSON pointer, which
// begins with a slash.
func (a *Argument) Name() string {
	name := strings.TrimPrefix(a.Pointer, "/")
	if name == "" || strings.ContainsAny(name, "/~") {
		return a.Pointer
	}
	return name
}

// Ambiguous reports whether the text of the value looks like a value of another kind, or like none.
func (a *Argument) Ambiguous() bool {
	return a.Kind == "text" && (strings.TrimSpace(a.Text) == "" || jsontext.Value(a.Text).IsValid())
}

// listArguments returns the values of a JSON document in order. more reports whether there are further
// values.
func listArguments(doc jsontext.Value) (all []Argument, more bool, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	bytes := 0

	for {
		t, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return all, false, nil
		}
		if err != nil {
			return all, false, err
		}

		// Empty objects and lists are values. The others appear as the values that they contain.
		kind, text := "", t.String()
		switch t.Kind() {
		case '{', '[':
			next := dec.PeekKind()
			switch {
			case t.Kind() == '{' && next == '}':
				kind, text = "empty object", "{}"
			case t.Kind() == '[' && next == ']':
				kind, text = "empty list", "[]"
			default:
				continue
			}
		case '}', ']':
			continue
		case '"':
			if canonical.IsName(dec) {
				continue
			}
			kind = "text"
		case '0':
			kind = "number"
		case 't', 'f':
			kind = "yes or no"
		case 'n':
			kind = "null"
		}

		v := Argument{Pointer: string(dec.StackPointer()), Kind: kind, Text: text}
		if bytes += len(v.Pointer) + len(v.Text); len(all) == maxValues || bytes > maxValueBytes {
			return all, true, nil
		}

		all = append(all, v)
	}
}

// compareArguments marks the arguments that differ from those of an earlier call, and adds those
// that only the earlier call has. Of two lists of which one ends early, nobody knows which arguments
// are new or gone.
func compareArguments(old, now []Argument, partial bool) []Argument {
	unmatched := make(map[string]*Argument, len(old))
	for i := range old {
		unmatched[old[i].Pointer] = &old[i]
	}
	for i := range now {
		a := &now[i]
		was := unmatched[a.Pointer]
		delete(unmatched, a.Pointer)
		switch {
		case was == nil && partial:
		case was == nil:
			a.Change = New
		case *was != *a:
			a.Change, a.Was = Changed, was.Text
			if was.Kind != a.Kind {
				a.Was += " (" + was.Kind + ")"
			}
		}
	}
	for i := range old {
		if o := unmatched[old[i].Pointer]; o != nil && !partial {
			now = append(now, Argument{Pointer: o.Pointer, Kind: o.Kind, Change: Gone, Was: o.Text})
		}
	}
	return now
}

// Arguments shows the arguments of a call, and their differences from those of another call.
type Arguments struct {
	Values   []Argument
	More     bool   // there are more values
	Raw      string // indented
	Compared string // run with which the arguments are compared; empty: none
	At       string // time of its request
	Partial  bool   // not all values were compared
}

// NewArguments reads the arguments of a call.
func NewArguments(doc jsontext.Value) (a Arguments, err error) {
	if a.Values, a.More, err = listArguments(doc); err != nil {
		return a, err
	}
	raw := doc.Clone()
	err = raw.Indent(jsontext.WithIndent("  "))
	a.Raw = string(raw)
	return a, err
}

// compare compares the arguments with those of an earlier run.
func (a *Arguments) compare(run *ledger.RunRow, doc jsontext.Value) error {
	old, more, err := listArguments(doc)
	if err != nil {
		return err
	}
	a.Compared, a.At, a.Partial = run.RunID, run.At, more || a.More
	a.Values = compareArguments(old, a.Values, a.Partial)
	return nil
}

// Differ returns the number of arguments that differ from the earlier run's.
func (a *Arguments) Differ() (n int) {
	for i := range a.Values {
		if a.Values[i].Change != "" {
			n++
		}
	}
	return n
}

// ReadArguments reads the arguments of a held call, and compares them with those of the last approved
// call of its tool; nil: there is none.
func ReadArguments(r ledger.Reader, doc jsontext.Value, last *ledger.RunRow) (a Arguments, err error) {
	if a, err = NewArguments(doc); err != nil || last == nil {
		return a, err
	}
	args, err := last.ReadArgs(r)
	if err != nil {
		return a, err
	}
	return a, a.compare(last, args)
}

// approvedStatuses lists the statuses of calls that approvers may have approved.
var approvedStatuses = []ledger.Status{ledger.Approved, ledger.Executed, ledger.Failed, ledger.Indeterminate}

// LastApproved returns the last approved call of the tool of a held call, or nil. If the call is
// decided, that is the last one before it.
func LastApproved(r ledger.Reader, q *Run) (*ledger.RunRow, error) {
	f := ledger.Filter{Statuses: approvedStatuses, Held: true, Server: q.Server, Tool: q.Tool, Newest: true}
	if q.Status != ledger.Pending {
		f.Before = q.Run
	}
	for row, err := range r.Runs(f) {
		if err != nil {
			return nil, err
		}
		if row.Agreed >= max(row.Quorum, 1) {
			return &row, nil
		}
	}
	return nil, nil
}
