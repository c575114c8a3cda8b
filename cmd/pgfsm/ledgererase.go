package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres/pgurl"
	"pgfsm/traces/ledger/stores"
)

func newLedgerFind(f *ledgerFlags) *cobra.Command {
	var text string
	var names bool
	cmd := f.newViewCommand("find --text TEXT", cobra.NoArgs,
		func(ctx context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
			found, err := ledger.Find(ctx, r, text)
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("found", append([]ledger.Found{}, found...)), func(out io.Writer, _ ink) {
				for _, p := range found {
					switch {
					case names && p.Name != "":
						fmt.Fprintln(out, visible.Text(p.Name))
					case !names:
						fmt.Fprintf(out, "%-7s  %-36s  %s  %s\n", p.Kind, visible.Text(cmp.Or(p.Name, "-")),
							cli.Count(len(p.Entries), "entry", "entries"), visible.Text(p.Note))
					}
				}
				if len(found) == 0 {
					fmt.Fprintln(f.w.stderr, "The ledger does not have the text.")
				}
			})
		})
	checkFirst(cmd, func() error { return notEmpty(cmd, "text") })
	cmd.Flags().StringVar(&text, "text", "", "the `TEXT` to look for; letters match in either case")
	cmd.Flags().BoolVar(&names, "names", false, "print only the names that erase takes")
	_ = cmd.MarkFlagRequired("text") // the flag exists
	return cmd
}

// erasuresFile is the list of erasures beside the configuration.
const erasuresFile = "erasures.jsonl"

// An eraseCommand holds the flags of ledger erase.
type eraseCommand struct {
	*ledgerFlags
	reason             string
	order, list, apply string
	keys               []string
}

func newLedgerErase(f *ledgerFlags) *cobra.Command {
	c := &eraseCommand{ledgerFlags: f}
	cmd := f.newManageCommand("erase [NAME]...", cobra.ArbitraryArgs, stores.ToChange, c.erase)
	reasons := make([]string, len(ledger.ErasureReasons()))
	for i, r := range ledger.ErasureReasons() {
		reasons[i] = string(r)
	}
	begin := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := 0
		for _, is := range []bool{len(args) > 0, c.order != "", c.apply != ""} {
			if is {
				given++
			}
		}
		switch {
		case given != 1:
			return errors.New("name what to erase, or give --order, or --apply")
		case c.apply == "" && !slices.Contains(reasons, c.reason):
			return fmt.Errorf("--reason is %q: give one of %s", c.reason, strings.Join(reasons, ", "))
		}
		return begin(cmd, args)
	}
	flags := cmd.Flags()
	flags.StringVar(&c.reason, "reason", "", "why: "+strings.Join(reasons, ", "))
	flags.StringVar(&c.order, "order", "", "a `FILE` with a signed order (pgfsm ledger prune-order --run)")
	flags.StringVar(&c.apply, "apply", "", "erase again what this `FILE` lists, after a copy was restored")
	flags.StringVar(&c.list, "list", "", "the `FILE` that lists erasures (default: "+erasuresFile+" beside the configuration)")
	flags.StringArrayVar(&c.keys, "key", nil,
		"sign the order with the private key in this `FILE`; may be given again (default: checkpoints.key of the configuration)")
	return cmd
}

// erase erases what the arguments or an order name, or what a list names.
func (c *eraseCommand) erase(ctx context.Context, o *openedLedger, caller ledger.Caller, names []string) error {
	if c.apply != "" {
		return c.applyList(ctx, o, caller)
	}
	list, err := c.listPath(o)
	if err != nil {
		return err
	}
	q := ledger.PruneRequest{Reason: ledger.ErasureReason(c.reason)}
	var line *ledger.Erasure
	var runs []string
	err = o.View(ctx, func(r ledger.Reader) (err error) {
		if q.Order, runs, err = c.orderOf(o, r, names); err != nil {
			return err
		}
		line, err = ledger.NewErasure(r, q.Order, q.Reason)
		return err
	})
	if err != nil {
		return err
	}

	// The list comes first: if the process ends in between, it names what may be left to erase.
	undo, err := appendLine(list, line.Line())
	if err != nil {
		return fmt.Errorf("the list of erasures cannot be written: %w; name another one with --list", err)
	}
	erased, err := o.Prune(ctx, q, caller)
	if err != nil {
		if erased.Entries == 0 {
			err = errors.Join(err, undo())
		}
		return err
	}
	removed, err := o.removeTraces(runs)
	if err != nil {
		return err
	}
	doc := cli.Document("entries", erased.Entries, "runs", erased.Runs, "traces", removed, "list", list, "out_of_reach", o.outOfReach())
	return c.printDocument(doc, func(out io.Writer, _ ink) {
		fmt.Fprintf(out, "%s of %s erased, and %s; listed in %s\n", cli.Count(erased.Entries, "entry", "entries"),
			cli.Count(erased.Runs, "run"), cli.Count(removed, "trace"), visible.Text(list))
		fmt.Fprintln(out, "Out of reach of this command:")
		for _, place := range o.outOfReach() {
			fmt.Fprintf(out, "- %s\n", place)
		}
	})
}

// orderOf returns the signed order, and the runs that it names as far as they are known.
func (c *eraseCommand) orderOf(o *openedLedger, r ledger.Reader, names []string) (signed []byte, runs []string, err error) {
	if c.order != "" {
		if signed, err = safefile.ReadTrusted(c.order); err != nil {
			return nil, nil, err
		}
		runs, err = ledger.RunsOfOrder(r, signed)
		return signed, runs, err
	}
	if len(c.keys) == 0 && len(o.checkpoints.Keys) == 0 {
		return nil, nil, errors.New("an erasure needs an order that a key of the log has signed: give --key FILE, or --order FILE " +
			"(pgfsm ledger key new makes a key, pgfsm ledger prune-order signs elsewhere)")
	}
	entries, runs, err := ledger.ErasureOf(r, names)
	if err != nil {
		return nil, nil, err
	}
	signed, err = o.signPruneOrder(r, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: entries}, c.keys)
	return signed, runs, err
}

// listPath returns the path of the list of erasures.
func (c *eraseCommand) listPath(o *openedLedger) (string, error) {
	switch {
	case c.list != "":
		return c.list, nil
	case o.loaded == nil:
		return "", errors.New("--list is missing: with --ledger, name the file that lists erasures, outside of the ledger's backups")
	}
	return filepath.Join(o.loaded.Dir(), erasuresFile), nil
}

// appendLine appends a line to a file, durably. undo removes it.
func appendLine(path string, line []byte) (undo func() error, err error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.Write(line)
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	return func() error { return os.Truncate(path, info.Size()) }, nil
}

// removeTraces removes the traces of runs from the configuration's folder, and returns how many there were.
func (o *openedLedger) removeTraces(runs []string) (removed int, err error) {
	if o.loaded == nil {
		return 0, nil
	}
	for _, run := range runs {
		switch err := os.Remove(filepath.Join(o.loaded.TracesDir, traces.Name(run))); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, err
		}
	}
	return removed, nil
}

// outOfReach lists the places that an erasure does not reach.
func (o *openedLedger) outOfReach() []string {
	places := []string{
		"backups, snapshots and replicas of the ledger: after a restore, pgfsm ledger erase --apply erases again what the list has",
		"exports, proofs, and traces in other folders",
		"what web hooks sent to chat tools, spans at the collector, and the gateway's log",
		"the clients' own files, and the servers' own data",
		"digests of the params of messages relayed outside a call (mcp.passed): erase their entries, entry:INDEX",
		"the log itself: names of tokens, blocked subjects, people's connections, ids of tasks, and configurations (pgfsm ledger find shows them as log)",
	}
	if pgurl.IsURL(o.name) {
		places = append(places, "PostgreSQL's files until VACUUM FULL of entries, runs, blobs and deliveries, its write-ahead log and its archive")
	}
	return places
}

// applyList erases again what a list names, in a ledger that was restored from a copy.
func (c *eraseCommand) applyList(ctx context.Context, o *openedLedger, caller ledger.Caller) error {
	text, err := safefile.ReadTrusted(c.apply)
	if err != nil {
		return err
	}
	var erased, done, elsewhere int
	for i, row := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		if len(row) == 0 {
			continue
		}
		line, err := ledger.ReadErasure(row)
		var state ledger.ErasureState
		if err == nil {
			err = o.View(ctx, func(r ledger.Reader) (err error) {
				state, err = line.State(r)
				return err
			})
		}
		if err == nil && state == ledger.ErasureDue {
			_, err = o.Prune(ctx, ledger.PruneRequest{Order: []byte(line.Order), Reason: line.Reason}, caller)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%s:%d: %w", c.apply, i+1, err)
		case state == ledger.ErasureDue:
			erased++
		case state == ledger.ErasureDone:
			done++
		default:
			elsewhere++
		}
	}
	code := cli.ExitYes
	if elsewhere > 0 {
		code = cli.ExitNo
	}
	return c.w.printDocument(c.json, cli.Document("erased", erased, "done", done, "elsewhere", elsewhere), code, func(out io.Writer, _ ink) {
		fmt.Fprintf(out, "%s made again; %d were made already\n", cli.Count(erased, "erasure"), done)
		if elsewhere > 0 {
			fmt.Fprintf(out, "%s of entries that this ledger does not have: it is an older copy; use pgfsm ledger find for what is left\n",
				cli.Count(elsewhere, "erasure"))
		}
	})
}
