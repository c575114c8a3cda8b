package present

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// MaxLooked bounds the entries that [ReadLog] reads for one page.
const MaxLooked = 5_000

// A LogFilter chooses entries of the log. The zero filter chooses all.
type LogFilter struct {
	EventFilter
	Run   string
	Since string // a time in the ledger's form; empty: the beginning
	Until string // entries from before this time
}

// An EventFilter chooses events.
type EventFilter struct {
	Type ledger.Type // empty: any
	By   string      // an actor or its display name, the name of a token, or the id of a process; empty: any
}

// Matches reports whether the filter chooses an event.
func (f *EventFilter) Matches(e *ledger.Event) bool {
	if f.Type != "" && e.Type != f.Type {
		return false
	}
	if f.By == "" || e.By == f.By {
		return true
	}
	event := NewEvent(e)
	return event.By == f.By || event.Display == f.By
}

// Check returns an error if the filter chooses an unknown type of event.
func (f *EventFilter) Check() error {
	if f.Type == "" || slices.Contains(ledger.Types(), f.Type) {
		return nil
	}
	types := strings.Trim(fmt.Sprint(ledger.Types()), "[]")
	return fmt.Errorf("type %q: give one of %s", f.Type, strings.ReplaceAll(types, " ", ", "))
}

// Choose checks the filter and sets its times, in the form of [ledger.ParsePast]. An empty time is
// no bound.
func (f *LogFilter) Choose(since, until string, now time.Time) (err error) {
	if err := f.Check(); err != nil {
		return err
	}
	if since != "" {
		if f.Since, err = ledger.ParsePast(since, now); err != nil {
			return fmt.Errorf("since %w", err)
		}
	}
	if until != "" {
		if f.Until, err = ledger.ParsePast(until, now); err != nil {
			return fmt.Errorf("until %w", err)
		}
	}
	return nil
}

// A Log is one page of the entries of a log, newest first. Every member is always present.
type Log struct {
	SchemaVersion int     `json:"schema_version"`
	Entries       []Entry `json:"entries"`
	From          int64   `json:"from"`   // first index of the entries that were read
	To            int64   `json:"to"`     // end of the entries that were read, exclusive
	Pruned        int64   `json:"pruned"` // number of read entries whose body was pruned
	Next          int64   `json:"next"`   // value of before for the next page; 0: there is none
}

// An Entry is one entry of the log.
type Entry struct {
	Entry  int64         `json:"entry"` // the entry's index
	At     string        `json:"at"`
	By     string        `json:"by"`
	Run    string        `json:"run"` // empty for an entry that concerns no run
	Types  []ledger.Type `json:"types"`
	Text   string        `json:"text"`   // the hashed text, the header
	Body   string        `json:"body"`   // the text whose digest the header has; empty if it was pruned
	Hash   string        `json:"hash"`   // the text's hash in the tree
	Intact bool          `json:"intact"` // text and body match the hash
	Lines  []string      `json:"-"`      // the events for people, escaped
	Words  [][]string    `json:"-"`      // of each event: its actor and its details, escaped; empty if it cannot be read

	Outcomes []string `json:"-"` // of each event: the decision, the state in which the run ended, or empty
	// The call of the run, if the entry has the request; the event's payload says it.
	Server, Tool string `json:"-"`
}

// NewEntry returns an entry with its events. A pruned entry has the types of its events only.
func NewEntry(r ledger.Reader, e *ledger.Entry, events []ledger.Event) (Entry, error) {
	hash, intact, err := e.Intact(r)
	out := Entry{
		Types:  []ledger.Type{},
		Entry:  e.Index,
		At:     e.At,
		Run:    e.RunID,
		Text:   string(e.Leaf()),
		Body:   string(e.Body),
		Hash:   hash.String(),
		Intact: intact,
	}
	for i := range events {
		out.By = events[i].By
		event := NewEvent(&events[i])
		out.Types, out.Lines = append(out.Types, event.Type), append(out.Lines, event.Detail())
		out.Outcomes, out.Words = append(out.Outcomes, event.outcome()), append(out.Words, event.detailWords())
		if event.Type == ledger.RequestCreated {
			out.Server, out.Tool = valueAt(event.Payload, "/call/server"), valueAt(event.Payload, "/call/tool")
		}
	}

	switch {
	case e.Pruned():
		// The hash says whether the header is the recorded one.
		if header, err := checkpoint.ParseHeader(e.Header); err == nil {
			for _, t := range header.Types {
				out.Types, out.Lines = append(out.Types, ledger.Type(t)), append(out.Lines, visible.Text(t))
			}
		}
	case len(events) == 0:
		out.Lines = append(out.Lines, "the events cannot be read")
	}

	return out, err
}

// ReadLog returns the newest entries before an index that a filter chooses, at most limit. It reads
// MaxLooked entries at most, unless the filter names a run or a rare type.
func ReadLog(r ledger.Reader, f LogFilter, before int64, limit int) (l Log, err error) {
	l = Log{SchemaVersion: SchemaVersion, Entries: []Entry{}}
	end, err := r.End()
	if err != nil {
		return l, err
	}

	if l.To = end.Size; before > 0 {
		l.To = min(l.To, before)
	}

	if f.Until != "" {
		untilIndex, err := ledger.FirstEntryAt(r, f.Until)
		if err != nil {
			return l, err
		}
		l.To = min(l.To, untilIndex)
	}

	first := int64(0)
	if f.Since != "" {
		if first, err = ledger.FirstEntryAt(r, f.Since); err != nil {
			return l, err
		}
	}

	// An index finds the entries of a run or of a rare type; all others are read one by one.
	source := r.Entries
	l.From = first
	switch {
	case f.Run != "":
		source = func(int64) entries { return r.EntriesOf(f.Run) }
	case f.Type.Rare():
		source = func(from int64) entries { return r.EntriesOfType(f.Type, from) }
	case f.EventFilter == EventFilter{}:
		l.From = max(first, l.To-int64(limit))
	default:
		l.From = max(first, l.To-MaxLooked)
	}

	l.From = min(l.From, l.To)
	return l, l.readPage(r, source(l.From), &f, limit, first)
}

type entries = iter.Seq2[ledger.Entry, error]

// readPage reads the entries of the page.
func (l *Log) readPage(r ledger.Reader, source entries, f *LogFilter, limit int, first int64) error {
	type found struct {
		entry  ledger.Entry
		events []ledger.Event
	}
	var last []found
	more := false

	for e, err := range source {
		if err != nil {
			return err
		}
		if e.Index < l.From {
			continue
		}
		if e.Index >= l.To {
			break
		}
		if e.Pruned() {
			l.Pruned++
			continue
		}
		if !f.mayMatch(&e) {
			continue
		}

		events, err := e.ReadEvents()
		if errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		// An unreadable entry is listed: the filter cannot be applied to it.
		if readable := err == nil; readable && !slices.ContainsFunc(events, func(event ledger.Event) bool { return f.Matches(&event) }) {
			continue
		}

		// Entries come oldest first, and the page has the newest.
		if last = append(last, found{e, events}); len(last) > limit {
			last, more = last[1:], true
		}
	}

	for _, page := range slices.Backward(last) {
		entry, err := NewEntry(r, &page.entry, page.events)
		if err != nil {
			return err
		}
		l.Entries = append(l.Entries, entry)
	}

	switch {
	case more:
		l.Next = last[0].entry.Index
	case l.From > first:
		l.Next = l.From
	}

	return nil
}

// mayMatch reports whether an entry may have an event that the filter chooses. An entry's text
// contains the types and the actors of its events.
func (f *LogFilter) mayMatch(e *ledger.Entry) bool {
	return bytes.Contains(e.Body, []byte(f.Type)) &&
		(f.By == "" || bytes.Contains(e.Body, canonical.AppendText(nil, f.By)))
}
