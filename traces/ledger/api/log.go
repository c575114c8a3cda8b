package api

import (
	"errors"
	"html/template"
	"strconv"
	"strings"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// A logView is the page of the log.
type logView struct {
	Log         present.Log
	Entries     []logEntry
	Changed     []int64 // entries of this page that do not match the tree
	Last        int64   // index of the last entry that was read
	Types       []ledger.Type
	Type        string // the chosen type
	Fields      []field
	Applied     []appliedFilter
	Error       string
	Newest      template.URL // query of the first page; empty on the first
	Older       template.URL // query of the next page; empty on the last
	Size        int64        // size of the log
	Checkpoints present.Checkpoints
	NoFolder    bool             // this service writes no checkpoints
	Replicas    *ledger.Replicas // nil unless there are several
	Work        []present.Row    // work of the replicas
}

// A logEntry is an entry in the list.
type logEntry struct {
	present.Entry
	Chips []chip
	Sub   string       // the events' details
	Call  *present.Run // nil: the entry is of no run, or its run is not known
}

// logFields are the filters of the log, besides the type.
var logFields = []field{
	{Name: "run", Label: "Run"}, {Name: "by", Label: "Actor, token or process"},
	{Name: "since", Label: "Since", Hint: hintOfTime},
	{Name: "until", Label: "Until", Hint: hintOfTime},
}

// readEntries reads one page of the log, newest first.
func (h *Handler) readEntries(v *visit) (out present.Log, err error) {
	f := present.LogFilter{EventFilter: present.EventFilter{Type: ledger.Type(v.query["type"]), By: v.query["by"]},
		Run: v.query["run"]}
	if err := f.Choose(v.query["since"], v.query["until"], h.Ledger.Now()); err != nil {
		return out, newProblem(QueryInvalid, err.Error())
	}
	limit, err := v.pageLimit()
	if err != nil {
		return out, err
	}

	before := int64(0)
	if text := v.query["before"]; text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return out, newProblem(QueryInvalid, "before must be the index of an entry, as next says it")
		}
	}
	return readList(h, v, func(r ledger.Reader) (present.Log, error) { return present.ReadLog(r, f, before, limit) })
}

// readCheckpoints reads the last checkpoints.
func (h *Handler) readCheckpoints(v *visit) (present.Checkpoints, error) {
	return readList(h, v, func(r ledger.Reader) (present.Checkpoints, error) { return present.ReadCheckpoints(r, h.Checkpoints) })
}

// readReplicas reads the processes that work on the ledger.
func (h *Handler) readReplicas(v *visit) (out ledger.Replicas, err error) {
	if err := h.listing.Acquire(v.r.Context()); err != nil {
		return out, err
	}
	defer h.listing.Release()
	last, err := checkpoint.Last(h.Checkpoints)
	if err != nil {
		return out, err
	}
	out, err = h.Ledger.Replicas(v.r.Context())
	out.Checkpoint = last.Size
	return out, err
}

// showLog shows the entries of the log and its checkpoints.
func (h *Handler) showLog(v *visit) (answer, error) {
	chosen := v.chosenFilter("type", logFields)
	body := logView{
		Types:    ledger.Types(),
		Type:     v.query["type"],
		Fields:   chosen.fields,
		Applied:  chosen.applied(),
		NoFolder: h.Checkpoints == "",
	}

	var err error
	audits := v.caller.May(ledger.ActAudit)
	if audits {
		body.Log, err = h.readEntries(v)
	}
	text, status, err := pageText(err)
	if err != nil {
		return answer{}, err
	}
	body.Error = text

	if body.Checkpoints, err = h.readCheckpoints(v); err != nil {
		return answer{}, err
	}
	if err := h.readLedger(v, body.addEntries); err != nil {
		return answer{}, err
	}
	if err := h.addReplicas(v, &body); err != nil {
		return answer{}, err
	}

	body.Size, body.Last = v.after, body.Log.To-1
	first := v.query["before"] == ""
	if !first {
		body.Newest = chosen.link("")
	}
	if next := body.Log.Next; next > 0 {
		body.Older = chosen.link(strconv.FormatInt(next, 10))
	}

	shows := view{Status: status, Title: "Log", Tab: "log", CLI: "pgfsm ledger status", Body: &body}
	if audits {
		words := []string{"pgfsm", "ledger", "tail", "-n", strconv.Itoa(pageSize)}
		shows.CLI = present.CommandLine(append(words, chosen.flags...)...)
	}
	if audits && first {
		shows.Events = "of=log"
	}
	return h.page(v, "log", shows), nil
}

// addEntries adds the entries of the page, with the calls of their runs.
func (b *logView) addEntries(r ledger.Reader) error {
	calls := make(map[string]*present.Run)
	for _, e := range b.Log.Entries {
		if !e.Intact {
			b.Changed = append(b.Changed, e.Entry)
		}
		listed := logEntry{Entry: e}
		for i, kind := range e.Types {
			outcome := ""
			if i < len(e.Outcomes) {
				outcome = e.Outcomes[i]
			}
			listed.Chips = append(listed.Chips, eventChip(kind, outcome))
		}
		listed.Sub = strings.Join(eventDetails(&e), " · ")
		if e.Tool != "" {
			calls[e.Run] = &present.Run{Call: present.Call{Run: e.Run, Server: e.Server, Tool: e.Tool}}
		}
		if _, read := calls[e.Run]; !read && e.Run != "" {
			row, err := r.Run(e.Run)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			if err == nil {
				run := present.NewRun(&row)
				calls[e.Run] = &run
			}
		}
		listed.Call = calls[e.Run]
		b.Entries = append(b.Entries, listed)
	}
	return nil
}

// eventDetails says for each event of an entry who caused it, and its details.
func eventDetails(e *present.Entry) (all []string) {
	if len(e.Words) == 0 && len(e.Types) == 0 {
		return e.Lines // why there are none
	}
	for _, words := range e.Words {
		by, rest := words[0], strings.Join(words[1:], "  ")
		// A process that records a decision says nothing to people.
		if by != "" && rest != "" && !isRunID(by) {
			rest = by + ": " + rest
		}
		if rest == "" && !isRunID(by) {
			rest = by
		}
		if rest != "" {
			all = append(all, rest)
		}
	}
	return all
}

// eventChip describes an event. Only votes and decisions have a tone.
func eventChip(kind ledger.Type, outcome string) chip {
	c := chip{"plain", "", string(kind)}
	switch {
	case kind == ledger.ApprovalRequested, outcome == string(policy.Hold):
		c.Tone, c.Icon = "warn", "clock"
	case kind == ledger.ApprovalApproved:
		c.Tone, c.Icon = "info", "check"
	case kind == ledger.ApprovalDenied, kind == ledger.ApprovalExpired, kind == ledger.AccessRefused,
		outcome == string(policy.Block), outcome == string(states.Blocked), outcome == string(states.Failed):
		c.Tone, c.Icon = "bad", "no"
	case outcome == string(policy.Allow), outcome == string(states.Answered):
		c.Tone, c.Icon = "good", "check"
	}
	return c
}

// addReplicas adds the replicas if there are several.
func (h *Handler) addReplicas(v *visit, body *logView) error {
	replicas, err := h.readReplicas(v)
	if err == nil && len(replicas.Replicas) > 1 {
		body.Replicas, body.Work = &replicas, present.ReplicaRows(&replicas)
	}
	return err
}

// An entryView is the page of one entry.
type entryView struct {
	present.Entry
	Pruned  bool   // only the header is left
	Events  string // indented
	Covered int64  // size of a signed checkpoint that covers the entry; 0: none does
}

// showEntry shows one entry with its header and its body.
func (h *Handler) showEntry(v *visit) (answer, error) {
	index, err := strconv.ParseInt(v.id, 10, 64)
	if err != nil {
		return answer{}, err
	}
	var body entryView
	err = h.readLedger(v, func(r ledger.Reader) error {
		if index >= v.after {
			return newProblem(Code(ledger.RefusedUnknown), "the log has no such entry yet")
		}
		return body.readEntry(r, index, h.Checkpoints)
	})
	if err != nil {
		return answer{}, err
	}

	cli := present.CommandLine("pgfsm", "ledger", "export", "--since", body.At)
	return h.page(v, "entry", view{Title: "Entry " + v.id, Tab: "log", CLI: cli, Body: &body}), nil
}

// readEntry reads the entry with an index.
func (b *entryView) readEntry(r ledger.Reader, index int64, checkpoints string) error {
	for e, err := range r.Entries(index) {
		if err != nil {
			return err
		}
		if e.Index != index {
			break
		}
		events, err := e.ReadEvents()
		if err != nil && errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		if b.Entry, err = present.NewEntry(r, &e, events); err != nil {
			return err
		}
		b.Pruned = e.Pruned()
		for i := range events {
			b.Events += indentJSON(events[i].Payload) + "\n"
		}
		break
	}

	covered, err := coveredBy(r, checkpoints, index)
	b.Covered = covered
	return err
}
