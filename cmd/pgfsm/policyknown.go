package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/config/pins"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/condition"
)

// Where it is known from whether a tool is pinned, and what the tool says of itself.
const (
	fromAllowlist = "allowlist"       // the pin that stands there, or that none does
	fromKept      = "kept definition" // of the pin; a run takes no other definition of the tool
	fromServer    = "server"          // what it sends now
	fromAsker     = "given"           // by a flag, or by the test
	fromNowhere   = "unknown"         // nobody was asked, so there are none
)

// toolKnown is what conditions are told of a tool, besides its name.
type toolKnown struct {
	Pinned          bool               `json:"pinned"`
	PinnedFrom      string             `json:"pinned_from"`
	Annotations     policy.Annotations `json:"annotations"`
	AnnotationsFrom string             `json:"annotations_from"`
}

// toolsKnown answers for the tools of a configuration what a run would tell conditions of them.
type toolsKnown struct {
	bundle  *policy.Bundle
	catalog *policy.Catalog // what the servers list or, if none was asked, the kept definitions of pins
	live    bool            // the servers were asked
}

// toolsKnown reads the kept definitions or, if live, asks the servers.
func (a *app) toolsKnown(ctx context.Context, live bool) (*toolsKnown, error) {
	c, err := a.catalog(ctx, live)
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = new(policy.Catalog)
	}
	return &toolsKnown{bundle: a.bundle, catalog: c, live: live}, nil
}

// of says what is known of one tool.
func (k *toolsKnown) of(server, tool string) toolKnown {
	pin := pins.Of(k.bundle.Content().Pins, server, tool)
	got := toolKnown{Pinned: pin != "", PinnedFrom: fromAllowlist, AnnotationsFrom: fromNowhere}
	if t, _ := k.catalog.Find(server, tool); t != nil {
		got.Annotations, got.AnnotationsFrom = t.Annotations, fromKept
		if k.live {
			got.AnnotationsFrom = fromServer
		}
	}
	return got
}

// with puts what whoever asks says into the place of what is known; nil says nothing.
func (t toolKnown) with(pinned *bool, annotations *policy.Annotations) toolKnown {
	if pinned != nil {
		t.Pinned, t.PinnedFrom = *pinned, fromAsker
	}
	if annotations != nil {
		t.Annotations, t.AnnotationsFrom = *annotations, fromAsker
	}
	return t
}

// tell puts it into what conditions may ask about.
func (t toolKnown) tell(in *condition.Input) {
	in.Pinned, in.Annotations = t.Pinned, condition.Annotations(t.Annotations)
}

// says is what is known, for people.
func (t toolKnown) says() string {
	pinned := "not pinned"
	if t.Pinned {
		pinned = "pinned"
	}
	var hints []string
	for _, h := range []struct {
		name string
		says *bool
	}{
		{"readOnlyHint", t.Annotations.ReadOnly}, {"destructiveHint", t.Annotations.Destructive},
		{"idempotentHint", t.Annotations.Idempotent}, {"openWorldHint", t.Annotations.OpenWorld},
	} {
		if h.says != nil {
			hints = append(hints, fmt.Sprintf("%s %t", h.name, *h.says))
		}
	}
	return fmt.Sprintf("%s (%s), annotations: %s (%s)", pinned, t.PinnedFrom, cmp.Or(strings.Join(hints, ", "), "none"), t.AnnotationsFrom)
}

// readAnnotations reads the hints that a flag gives.
func readAnnotations(text string) (*policy.Annotations, error) {
	doc, err := canonical.JSON([]byte(text))
	if err == nil && jsontext.Value(doc).Kind() != '{' {
		err = errors.New("not a JSON object")
	}
	var hints policy.Annotations
	if err == nil && json.Unmarshal(doc, &hints, json.RejectUnknownMembers(true)) != nil {
		err = errors.New("it has another member, or one that is neither true nor false")
	}
	if err != nil {
		return nil, fmt.Errorf("annotations: %w; give readOnlyHint, destructiveHint, idempotentHint and openWorldHint, "+
			"as far as the tool has them, such as '{\"readOnlyHint\": true}'", err)
	}
	return &hints, nil
}
