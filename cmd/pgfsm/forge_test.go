package main

import (
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/internal/canonical"
	"pgfsm/traces/tracestest"
)

// forge IN OUT WHAT OLD NEW writes a trace with a text of it replaced, and with the whole chain computed anew: what a person can do
// who may write the folder. WHAT is machine, bundle, from, facts, event (of the last three, in the first step that has OLD) or
// nothing, which changes only the times.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: forge IN OUT WHAT OLD NEW")
	}
	doc, err := forged([]byte(ts.ReadFile(args[0])), args[2], args[3], args[4])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o700))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), doc, 0o600))
}

func forged(doc []byte, what, old, new string) ([]byte, error) {
	d, err := tracestest.Parse(doc)
	if err != nil {
		return nil, err
	}
	switch what {
	case "nothing":
	case "machine", "bundle":
		err = tracestest.Replace(what, old, new, d.Members)
	case "from": // new may hold control characters
		text := canonical.AppendText(nil, new)
		err = tracestest.Replace(what, old, string(text[1:len(text)-1]), d.Steps...)
	default:
		err = tracestest.Replace(what, old, new, d.Steps...)
	}
	if err != nil {
		return nil, err
	}
	for _, step := range d.Steps {
		step["at"] = jsontext.Value(`"2100-01-01T00:00:00.000Z"`)
	}
	return d.Seal()
}
