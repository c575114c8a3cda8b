package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

const (
	// defaultTail is how many events tail prints.
	defaultTail = 20
	// followEvery is how often tail --follow looks for new events: soon enough for people, and no burden.
	followEvery = 500 * time.Millisecond
	// maxTold bounds what is shown of one member of an event's payload.
	maxTold = 200
)

func newLedgerTail(w world, f *ledgerFlags) *cobra.Command {
	var n int
	var follow bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the last events",
		Long: `tail prints the last events, one a line: number, time, type, run, actor, and the most important detail.
With --json each line is a JSON document with the whole event. --follow continues until it is interrupted.`,
		Example: `  pgfsm ledger tail -n 50
  pgfsm ledger tail --follow --json | jq 'select(.type == "proxy.sent")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 0 {
				return fmt.Errorf("-n is %d: give how many events to print, 0 or more", n)
			}
			return f.reading(w, func(o *openedLedger) error { return tail(cmd.Context(), w, o, int64(n), follow, f.json) })
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", defaultTail, "the number of events")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also print new events as they are recorded")
	return cmd
}

// tail prints the last n events, and then new ones, if that is wanted.
func tail(ctx context.Context, w world, o *openedLedger, n int64, follow, asJSON bool) error {
	after := int64(-1)
	more := func(r ledger.Reader) error {
		if after < 0 {
			end, err := ledger.TakeCheckpoint(r)
			if err != nil {
				return err
			}
			after = max(0, end.Size-n)
		}
		for e, err := range r.Events(after) {
			if err != nil {
				return err
			}
			if err := printEvent(w, r, &e, asJSON); err != nil {
				return err
			}
			after = e.Seq
		}
		return nil
	}
	if err := o.View(ctx, more); err != nil || !follow {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // whoever reads has had enough
		case <-tick.C:
		}
		if err := o.View(ctx, more); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// eventLine is the --json form of an event.
type eventLine struct {
	SchemaVersion int              `json:"schema_version,omitzero"`
	Seq           int64            `json:"seq"`
	At            string           `json:"at"`
	Type          ledger.Type      `json:"type"`
	Run           string           `json:"run"`
	By            string           `json:"by"`
	Payload       jsontext.Value   `json:"payload"`
	Prev          canonical.Digest `json:"prev"`
	RunPrev       canonical.Digest `json:"run_prev"`
	Hash          canonical.Digest `json:"hash"`
}

func newEventLine(r ledger.Reader, e *ledger.Event) (eventLine, error) {
	payload, err := e.Whole(r)
	return eventLine{
		Seq: e.Seq, At: e.At, Type: e.Type, Run: e.RunID, By: e.By, Payload: payload, Prev: e.Prev, RunPrev: e.RunPrev, Hash: e.Hash,
	}, err
}

// printEvent prints one event as one line.
func printEvent(w world, r ledger.Reader, e *ledger.Event, asJSON bool) error {
	line, err := newEventLine(r, e)
	if err != nil {
		return err
	}
	if asJSON {
		line.SchemaVersion = schemaVersion
		b, err := json.Marshal(line, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.stdout, "%s\n", visible.JSON(b))
		return err
	}
	_, err = fmt.Fprintf(w.stdout, "%6d  %s  %s\n", e.Seq, visible.Text(e.At), line.told(true))
	return err
}

// worth are the members of payloads that are most worth knowing, and how they are introduced.
var worth = map[ledger.Type][]struct{ pointer, word string }{
	ledger.RequestCreated:    {{"/call/server", ""}, {"/call/tool", ""}, {"/env", "env "}},
	ledger.CallReserved:      {{"/steps", "steps "}},
	ledger.RiskScored:        {{"/mode", ""}, {"/score", "score "}},
	ledger.DecisionMade:      {{"/outcome", ""}, {"/policy", "policy "}, {"/code", ""}, {"/reason", ""}},
	ledger.ApprovalRequested: {{"/quorum", "quorum "}, {"/approvers", "of "}, {"/expires", "until "}},
	ledger.ApprovalApproved:  {{"/reason", ""}},
	ledger.ApprovalDenied:    {{"/reason", ""}},
	ledger.ApprovalExpired:   {{"/expires", "at "}},
	ledger.RunClaimed:        {{"/owner", "by process "}},
	ledger.ProxySent:         {{"/permit", "permit "}},
	ledger.ToolResult:        {{"/bytes", "bytes "}},
	ledger.RunEnded:          {{"/outcome/state", ""}, {"/outcome/code", ""}, {"/outcome/reason", ""}},
	ledger.TokenCreated:      {{"/role", ""}, {"/name", "for "}, {"/expires", "until "}},
	ledger.TokenRevoked:      {{"/id", ""}},
	ledger.OutcomeDelivered:  {{"/how", "by "}},
	ledger.MCPPassed:         {{"/direction", ""}, {"/server", ""}, {"/method", ""}},
	ledger.LedgerPruned:      {{"/events", "events "}, {"/runs", "runs "}, {"/before", "before "}},
}

// told says an event in words for people.
func (l *eventLine) told(withRun bool) string {
	words := []string{fmt.Sprintf("%-18s", visible.Text(string(l.Type)))}
	if withRun {
		words = append(words, fmt.Sprintf("%-36s", visible.Text(l.Run)))
	}
	words = append(words, visible.Clip(l.By, maxTold))
	for _, m := range worth[l.Type] {
		text := pointedAt(l.Payload, m.pointer)
		if m.pointer == "/approvers" && text == "[]" {
			text = anyApprover
		}
		if text != "" {
			words = append(words, m.word+visible.Clip(text, maxTold))
		}
	}
	return strings.Join(words, "  ")
}

// pointedAt returns what stands at a JSON pointer, a string without its quotation marks; nothing if there is nothing.
func pointedAt(v jsontext.Value, pointer string) string {
	for name := range jsontext.Pointer(pointer).Tokens() {
		var members map[string]jsontext.Value
		if json.Unmarshal(v, &members) != nil || members[name] == nil {
			return ""
		}
		v = members[name]
	}
	if v.Kind() != '"' {
		return string(v)
	}
	text, err := canonical.Unquote(v)
	if err != nil {
		return string(v)
	}
	return text
}
