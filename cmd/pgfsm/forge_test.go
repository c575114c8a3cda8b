package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/traces"
)

// below returns one member of an object or item of an array.
func below(v jsontext.Value, name string) (jsontext.Value, error) {
	switch v.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if err := json.Unmarshal(v, &members); err != nil {
			return nil, err
		}
		if m, ok := members[name]; ok {
			return m, nil
		}
	case '[':
		var items []jsontext.Value
		if err := json.Unmarshal(v, &items); err != nil {
			return nil, err
		}
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(items) {
			return items[i], nil
		}
	}
	return nil, errors.New("nothing stands there")
}

// forge IN OUT WHAT OLD NEW writes a trace anew, whole chain and all, after something in it was replaced: what
// somebody can do who may write the folder. WHAT is machine, bundle, from, facts, event (of these three the first step
// that holds OLD) or nothing: then only the times are others.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: forge IN OUT WHAT OLD NEW")
	}
	dir, err := os.MkdirTemp(ts.Getenv("WORK"), "forge")
	ts.Check(err)
	path, err := forged([]byte(ts.ReadFile(args[0])), dir, args[2], args[3], args[4])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o700))
	ts.Check(os.Rename(path, ts.MkAbs(args[1])))
	ts.Check(os.Remove(dir))
}

func forged(doc []byte, dir, what, old, new string) (string, error) {
	t, err := traces.Read(doc)
	if err != nil {
		return "", err
	}
	changed := false
	put := func(b []byte) []byte {
		if changed || !bytes.Contains(b, []byte(old)) {
			return b
		}
		changed = true
		return bytes.Replace(b, []byte(old), []byte(new), 1)
	}
	switch h := &t.Header; what {
	case "machine":
		h.Machine = canonical.Digest(put([]byte(h.Machine)))
	case "bundle":
		h.Bundle.Content = put(h.Bundle.Content)
	case "nothing":
		changed = true
	}
	rec, err := traces.Create(dir, t.Header, func() string { return "2100-01-01T00:00:00Z" })
	if err != nil {
		return "", err
	}
	for _, s := range t.Steps {
		step := states.Step{From: s.From, To: s.To, On: s.Trigger, Facts: s.Facts, Command: s.Command, Event: s.Event}
		switch what {
		case "from":
			step.From = fsm.State(put([]byte(s.From)))
		case "facts":
			step.Facts = put(s.Facts)
		case "event":
			step.Event = put(s.Event)
		}
		if err := rec.Append(context.Background(), step); err != nil {
			return "", err
		}
	}
	if !changed {
		return "", errors.New("the trace has no " + what + " with " + old)
	}
	path, _, err := rec.Finish(t.Outcome)
	return path, err
}
