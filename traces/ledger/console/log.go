package console

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// A logView is the page of the log.
type logView struct {
	Base        string // prefix of links
	Audits      bool   // this person may see entries
	Log         present.Log
	Last        int64 // index of the last entry that was read
	Types       []ledger.Type
	Type        string // the chosen type
	Fields      []field
	Error       string
	Newest      template.URL // query of the first page; empty on the first
	Older       template.URL // query of the next page; empty on the last
	Size        int64        // size of the log
	Checkpoints present.Checkpoints
	NoFolder    bool             // this service writes no checkpoints
	Replicas    *ledger.Replicas // nil unless there are several
	Work        []present.Row    // work of the replicas
}

// entryIndex matches the index of an entry in its one form.
var entryIndex = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`)

// logFields are the filters of the log, besides the type.
var logFields = []field{
	{Name: "run", Label: "Run"}, {Name: "by", Label: "Actor, token or process"},
	{Name: "since", Label: "Since", Hint: hintOfTime},
	{Name: "until", Label: "Until", Hint: hintOfTime},
}

// showLog shows the entries of the log, newest first, and its checkpoints.
func (h *Handler) showLog(v *visit) error {
	query := v.r.URL.Query()
	body := logView{
		Base:     v.base,
		Audits:   v.who.May(ledger.ActAudit),
		Types:    ledger.Types(),
		Type:     query.Get("type"),
		NoFolder: h.Checkpoints == "",
	}
	chosen, words := url.Values{}, []string{"pgfsm", "ledger", "tail", "-n", strconv.Itoa(pageSize)}
	// The command and the links to other pages choose the same entries.
	for _, name := range []string{"type", "run", "by", "since", "until"} {
		if value := query.Get(name); value != "" {
			chosen.Set(name, value)
			words = append(words, "--"+name, value)
		}
	}
	for _, filter := range logFields {
		filter.Value = query.Get(filter.Name)
		body.Fields = append(body.Fields, filter)
	}
	filter := present.LogFilter{EventFilter: present.EventFilter{Type: ledger.Type(body.Type), By: query.Get("by")},
		Run: query.Get("run")}
	status, after := http.StatusOK, int64(0)
	beforeIndex, err := api.ParseEntryIndex(query.Get("before"))
	if err := cmp.Or(err, filter.Choose(query.Get("since"), query.Get("until"), h.Ledger.Now())); err != nil {
		status, body.Error = http.StatusBadRequest, err.Error()
	}
	if err := h.readInTurn(v, &after, func(r ledger.Reader, _ string) (err error) {
		if body.Audits && body.Error == "" {
			if body.Log, err = present.ReadLog(r, filter, beforeIndex, pageSize); err != nil {
				return err
			}
		}
		body.Checkpoints, err = present.ReadCheckpoints(r, h.Checkpoints)
		return err
	}); err != nil {
		return err
	}
	several, err := h.Ledger.SeveralGateways(v.r.Context())
	if err != nil {
		return err
	}
	if several { // with one replica, the page lists no replicas
		replicas, err := h.Ledger.Replicas(v.r.Context())
		if err != nil {
			return err
		}
		body.Replicas, body.Work = &replicas, present.ReplicaRows(&replicas)
	}
	body.Size, body.Last = after, body.Log.To-1
	if beforeIndex > 0 {
		body.Newest = template.URL("?" + chosen.Encode()) // Encode escapes
	}
	if next := body.Log.Next; next > 0 {
		chosen.Set("before", strconv.FormatInt(next, 10))
		body.Older = template.URL("?" + chosen.Encode()) // Encode escapes
	}
	shows := view{Title: "Log", After: after, CLI: present.CommandLine(words...), Body: &body}
	switch {
	case !body.Audits:
		shows.CLI = "pgfsm ledger status"
	case beforeIndex == 0:
		shows.Events = "of=log"
	}
	return h.renderPage(v, status, "log", shows)
}

// An entryView is the page of one entry.
type entryView struct {
	present.Entry
	Base    string // prefix of links
	Pruned  bool   // only the hash is left
	Events  string // indented
	Covered string // name of the checkpoint that covers the entry
}

// showEntry shows one entry with its text. It may contain results, which only auditors see.
func (h *Handler) showEntry(v *visit) error {
	if err := v.who.Allow(ledger.ActAudit); err != nil {
		return err
	}
	number, err := strconv.ParseInt(v.id, 10, 64)
	if err != nil {
		return errNoPage
	}

	body, after := entryView{Base: v.base}, int64(0)
	err = h.readSnapshot(v, &after, func(r ledger.Reader, _ string) error {
		if number >= after {
			return errNoEntry
		}
		return body.readEntry(r, number, h.Checkpoints)
	})
	if err != nil {
		return err
	}

	cli := ""
	if !body.Pruned { // no command prints the hash of a pruned entry
		cli = present.CommandLine("pgfsm", "ledger", "export", "--since", body.At)
	}

	return h.renderPage(v, http.StatusOK, "entry", view{Title: "Entry " + v.id, CLI: cli, Body: &body})
}

var errNoEntry = &refusal{http.StatusNotFound, "The log has no such entry yet."}

// readEntry reads the entry with an index.
func (b *entryView) readEntry(r ledger.Reader, index int64, checkpoints string) error {
	b.Pruned = true
	for e, err := range r.Entries(index) {
		if err != nil {
			return err
		}
		if e.Index != index {
			break
		}
		events, err := e.ReadEvents(r)
		if err != nil && errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		if b.Entry, err = present.NewEntry(r, &e, events); err != nil {
			return err
		}
		b.Pruned = false
		var list []jsontext.Value
		for i := range events {
			list = append(list, events[i].Payload)
		}
		b.Events = indentValues(list)
		break
	}

	// Of a pruned entry only the hash is left.
	if b.Pruned {
		pruned := ledger.Entry{Index: index}
		hash, _, err := pruned.Intact(r)
		if err != nil {
			return err
		}
		b.Entry.Entry, b.Hash = index, hash.String()
	}

	c, err := present.ReadCheckpoints(r, checkpoints)
	for _, checkpoint := range c.Checkpoints {
		if checkpoint.Problem == "" && checkpoint.Size > index {
			b.Covered = strconv.FormatInt(checkpoint.Size, 10)
		}
	}

	return err
}

// indentValues formats values for people.
func indentValues(values []jsontext.Value) (text string) {
	for _, v := range values {
		copied := v.Clone()
		if copied.Indent(jsontext.WithIndent("  ")) == nil {
			text += string(copied) + "\n"
		}
	}
	return text
}
