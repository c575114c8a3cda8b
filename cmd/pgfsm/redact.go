package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/mcp/wire"
	"pgfsm/policy/redact"
)

func newRedact(w world) *cobra.Command {
	var o options
	var server, tool string
	try := newCommand("try FILE", cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error {
		loaded, _, err := loadConfig(w, &o)
		if err != nil {
			return err
		}
		file, err := openInput(w, args[0])
		if err != nil {
			return err
		}
		defer file.Close() // it is only read
		text, err := io.ReadAll(file)
		if err != nil {
			return err
		}
		if !jsontext.Value(text).IsValid() {
			return fmt.Errorf("%s is not JSON: give a result of tools/call, or its structured content", args[0])
		}
		set, err := redact.Compile(loaded.Content.Redact)
		if err != nil {
			return err
		}
		if server != "" || tool != "" {
			set = set.For(server, tool)
		}
		done := tryRedaction(set, text)
		doc := cli.Document("rules", append([]redact.Hit{}, done.Hits...), "withheld", done.Why, "result", jsontext.Value(done.Text))
		return w.printDocument(o.json, doc, cli.ExitYes, func(out io.Writer, _ ink) {
			if done.Withheld {
				fmt.Fprintf(w.stderr, "The result is withheld: %s.\n", done.Why)
			} else {
				fmt.Fprintf(out, "%s\n", bytes.TrimSuffix(done.Text, []byte("\n")))
			}
			for _, hit := range done.Hits {
				fmt.Fprintf(w.stderr, "rule %s: %s\n", hit.Rule, cli.Count(hit.Count, "time"))
			}
			if len(done.Hits) == 0 && !done.Withheld {
				fmt.Fprintln(w.stderr, "No rule found anything.")
			}
		})
	})
	o.addFlags(try)
	try.Flags().StringVar(&server, "server", "", "only rules for the `SERVER`")
	try.Flags().StringVar(&tool, "tool", "", "only rules for this `TOOL`")
	return cli.Group("redact", try)
}

// tryRedaction applies rules to a result, or to JSON that would be its structured content.
func tryRedaction(set *redact.Set, text []byte) redact.Done {
	if wire.Member(text, "content") != nil || wire.Member(text, "structuredContent") != nil {
		return set.Document(text)
	}
	return set.Data(text)
}
