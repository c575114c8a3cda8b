package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/secret"
)

// MinFind is the length in bytes of the shortest text that [Find] looks for.
const MinFind = 3

// A Found is a place in a ledger whose stored bytes have a text.
type Found struct {
	// Name is what [ErasureOf] takes: a run, a client's session, or [EntryName]. It is empty if the place cannot
	// be erased.
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`    // FoundRun and so on
	Entries []int64 `json:"entries"` // those that have the text; none for a place beside the log
	Note    string  `json:"note"`    // what else there is to know, for people
}

// Kinds of places.
const (
	FoundRun     = "run"
	FoundSession = "session" // prompts of a client's session
	FoundEntry   = "entry"   // a relayed message, a refused request or a late report
	FoundLog     = "log"     // an entry that is never removed
	FoundBlob    = "blob"    // what several entries share; it goes with the last of them
	FoundConsole = "console" // a person who is signed in at the console
)

// entryPrefix begins the name of a single entry.
const entryPrefix = "entry:"

// Find returns the places of a ledger whose stored bytes have a text, in the order of the log. Letters match in
// either case, and behind the escapes of JSON in JSON. Bytes that are no UTF-8 are searched, too.
func Find(ctx context.Context, r Reader, text string) (found []Found, err error) {
	s := &search{reader: r, text: bytes.ToLower([]byte(text)), places: make(map[string]int), delivered: make(map[int64]bool)}
	if len(text) < MinFind {
		return nil, fmt.Errorf("a text of %d bytes is nearly everywhere: give %d or more", len(text), MinFind)
	}
	blobs := make(map[canonical.Digest]bool)
	for b, err := range r.Blobs() {
		if err != nil {
			return nil, err
		}
		if s.isIn([]byte(b.Text)) {
			blobs[b.Digest] = true
			s.note(Found{Kind: FoundBlob, Note: string(b.Digest) + ", which several entries may share"}, string(b.Digest))
		}
	}
	// The error of a delivery may repeat the message.
	for d, err := range r.Deliveries("", "9999", math.MaxInt32) {
		if err != nil {
			return nil, err
		}
		s.delivered[d.Entry] = s.isIn([]byte(d.Error))
	}
	for e, err := range r.Entries(0) {
		if err != nil || ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err())
		}
		if err := s.readEntry(&e, blobs); err != nil {
			return nil, err
		}
	}
	for session, err := range r.Sessions() {
		if err != nil {
			return nil, err
		}
		if s.isIn([]byte(session.Name)) || s.isIn(session.Identity) {
			s.note(Found{Kind: FoundConsole, Note: "a person who is signed in; it ends at " + session.Expires}, string(session.Secret))
		}
	}
	return s.found, nil
}

// A search collects the places that have a text.
type search struct {
	reader    Reader
	text      []byte // in lower case
	found     []Found
	places    map[string]int // the positions in found
	delivered map[int64]bool // entries with a delivery whose error has the text
}

// note adds a place, or an entry to a known one.
func (s *search) note(f Found, key string) {
	i, known := s.places[key]
	if !known {
		s.places[key] = len(s.found)
		s.found = append(s.found, f)
		return
	}
	s.found[i].Entries = append(s.found[i].Entries, f.Entries...)
}

// readEntry notes the place of an entry that has the text.
func (s *search) readEntry(e *Entry, blobs map[canonical.Digest]bool) error {
	has := s.delivered[e.Index] || s.isIn(e.Body)
	if !has && len(blobs) > 0 {
		refs, err := e.blobReferences()
		if err != nil {
			return err
		}
		has = slices.ContainsFunc(refs, func(d canonical.Digest) bool { return blobs[d] })
	}
	if !has {
		return nil
	}
	f := Found{Name: e.RunID, Kind: FoundRun, Entries: []int64{e.Index}}
	switch {
	case e.RunID != "":
		row, err := s.reader.Run(e.RunID)
		if err != nil {
			return explainNotFound(e.RunID, err)
		}
		if row.Ended == "" {
			f.Note = "has not ended, and cannot be erased before"
		}
	case classOf([]Type{e.Type}) != ClassSession:
		f.Name, f.Kind, f.Note = "", FoundLog, string(e.Type)+", which is never removed"
	default:
		event, err := e.singleEvent()
		if err != nil {
			return err
		}
		f.Name, f.Kind, f.Note = EntryName(e.Index), FoundEntry, string(e.Type)
		if p, ok := event.payload.(*promptCaptured); ok {
			f.Name, f.Kind, f.Note = p.Session, FoundSession, "its prompts, and with them its runs"
		}
	}
	key := f.Kind + f.Name
	if f.Name == "" {
		key = EntryName(e.Index)
	}
	s.note(f, key)
	return nil
}

// EntryName names a single entry for [ErasureOf].
func EntryName(index int64) string { return fmt.Sprintf("%s%d", entryPrefix, index) }

// encoded finds texts that are not UTF-8, which are recorded in base64.
var encoded = regexp.MustCompile(`"base64":"([A-Za-z0-9+/]+=*)"`)

// isIn reports whether stored bytes have the text.
func (s *search) isIn(stored []byte) bool {
	for view := range secret.Views(stored) {
		if bytes.Contains(bytes.ToLower(view), s.text) {
			return true
		}
	}
	for _, m := range encoded.FindAllSubmatch(stored, -1) {
		raw, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err == nil && s.isIn(raw) {
			return true
		}
	}
	return false
}

// ErasureOf returns the entries that an erasure of these names removes: whole runs, which have ended; sessions of
// clients, such as claude/ID, with their prompts and runs; and single entries ([EntryName]). A run may be named by the
// end of its id, as [FindRun] reads it. Late reports about a run, and messages relayed during its call, go with it.
func ErasureOf(r Reader, names []string) (ranges []Range, runs []string, err error) {
	w := &erasureWriter{reader: r, erased: make(map[string]bool)}
	for _, name := range names {
		before := len(w.ranges)
		w.repeated = false
		switch {
		case strings.HasPrefix(name, entryPrefix):
			err = w.addEntry(name)
		case strings.Contains(name, "/"):
			err = w.addSession(name)
		default:
			err = w.addNamedRun(name)
		}
		if err == nil && len(w.ranges) == before && !w.repeated {
			err = &Refusal{Code: RefusedUnknown, Message: fmt.Sprintf("the ledger has nothing of %q to erase", name)}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := w.addLateReports(); err != nil {
		return nil, nil, err
	}
	return unionOf(w.ranges), w.runs, nil
}

// An erasureWriter collects what an erasure removes.
type erasureWriter struct {
	reader   Reader
	ranges   []Range
	runs     []string
	erased   map[string]bool // the runs
	repeated bool            // a run of the name that is added was added before
}

func (w *erasureWriter) addIndex(index int64) { w.ranges = append(w.ranges, Range{index, index}) }

func (w *erasureWriter) addNamedRun(name string) error {
	run, err := FindRun(w.reader, name)
	if err != nil {
		return err
	}
	row, err := w.reader.Run(run)
	if err != nil {
		return explainNotFound(run, err)
	}
	return w.addRun(&row)
}

func (w *erasureWriter) addRun(q *RunRow) error {
	switch {
	case w.erased[q.RunID]:
		w.repeated = true
		return nil
	case q.Ended == "":
		return fmt.Errorf("%w: run %s has not ended, and only ended runs can be erased", ErrPruneOrder, q.RunID)
	}
	w.erased[q.RunID], w.runs = true, append(w.runs, q.RunID)
	for e, err := range w.reader.EntriesOf(q.RunID) {
		if err != nil {
			return err
		}
		w.addIndex(e.Index)
	}
	return w.addRelayed(q)
}

// addRelayed adds the messages that the gateway relayed between the requester and the server of a run during its call,
// such as questions of the server: each has a digest of its params. Those of another call at the same time go, too.
func (w *erasureWriter) addRelayed(q *RunRow) error {
	if q.Sent == "" {
		return nil
	}
	for e, err := range w.reader.Entries(q.First) {
		switch {
		case err != nil || e.Index > q.Entry:
			return err
		case e.Type != MCPPassed || e.Pruned() || e.At < q.Sent || e.At > q.Ended:
			continue
		}
		event, err := e.singleEvent()
		if err != nil {
			return err
		}
		p := event.payload.(*mcpPassed)
		if event.event.By == q.Actor && p.OnBehalfOf == q.OnBehalfOf && p.Server == q.Server {
			w.addIndex(e.Index)
		}
	}
	return nil
}

// addEntry adds a single entry.
func (w *erasureWriter) addEntry(name string) error {
	var index int64
	if _, err := fmt.Sscanf(name, entryPrefix+"%d", &index); err != nil || EntryName(index) != name || index < 0 {
		return fmt.Errorf("%q names no entry: write %s and its index", name, entryPrefix)
	}
	for e, err := range w.reader.Entries(index) {
		switch {
		case err != nil:
			return err
		case e.Index != index || e.Pruned():
		case e.RunID != "" || classOf([]Type{e.Type}) != ClassSession:
			return fmt.Errorf("%w: entry %d cannot be erased by itself: name its run, or leave it, if it is of the log",
				ErrPruneOrder, index)
		default:
			w.addIndex(index)
		}
		break
	}
	return nil
}

// addSession adds the prompts of a client's session, and its runs.
func (w *erasureWriter) addSession(session string) error {
	for q, err := range w.reader.Runs(Filter{Session: session}) {
		if err != nil {
			return err
		}
		if err := w.addRun(&q); err != nil {
			return err
		}
	}
	for e, err := range w.reader.Prompts(session) {
		if err != nil {
			return err
		}
		w.addIndex(e.Index)
	}
	return nil
}

// addLateReports adds the late reports about the runs.
func (w *erasureWriter) addLateReports() error {
	late, err := eventsOfTypes(w.reader, ReportLate)
	for i := range late {
		if w.erased[late[i].payload.(*reportLate).Run] {
			w.addIndex(late[i].event.Index)
		}
	}
	return err
}
