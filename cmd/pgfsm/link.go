package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/visible"
)

// linkEntry is the name of the entry for all servers; that for one server has its name behind it.
const linkEntry = "pgfsm"

// linkOptions are the flags of link.
type linkOptions struct {
	options
	dryRun, http, stdio, force bool
	server, variable, file     string
}

func newLink(w world) *cobra.Command {
	var o linkOptions
	cmd := &cobra.Command{
		Use:   "link {claude|cursor|vscode}",
		Short: "Add the gateway to a client's file of MCP servers",
		Long: `link adds an entry named pgfsm to the client's own file of MCP servers, so that the client talks to pgfsm serve.
link keeps all other members of the file, indents it anew, and saves its former content in FILE.bak. If the file is not
plain JSON, for example because of comments, link leaves it alone and prints the entry for you to add. The client's other
entries still bypass the gateway: remove those whose servers the gateway serves.

  claude  claude_desktop_config.json of Claude Desktop, which starts pgfsm itself (--stdio)
  cursor  .cursor/mcp.json in the home folder; it connects to serve.listen (--http)
  vscode  .vscode/mcp.json in the working folder; it connects to serve.listen (--http)

With --server NAME the client gets the endpoint of that server alone, with that server's own tool names; the entry is
then named pgfsm-NAME. With --token-env NAME the client presents the token in that variable of its own
environment; link never writes the token itself.

Exit codes: 0 the file has the entry; 2 it does not.`,
		Example: `  pgfsm link claude -c pgfsm.yaml --dry-run
  pgfsm link cursor -c pgfsm.yaml --token-env PGFSM_AGENT_TOKEN
  pgfsm link vscode -c pgfsm.yaml --server files`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, words []string) error { return o.link(w, words[0]) },
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the entry, and write nothing")
	cmd.Flags().BoolVar(&o.http, "http", false, "let the client connect to serve.listen")
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "let the client start pgfsm itself")
	cmd.Flags().StringVar(&o.server, "server", "", "the endpoint of one server, by its `NAME`")
	cmd.Flags().StringVar(&o.variable, "token-env", "", "the variable of the client's environment that holds its token, by its `NAME`")
	cmd.Flags().StringVar(&o.file, "file", "", "another `FILE` of the client, like .mcp.json of Claude Code")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace another entry of the same name")
	return cmd
}

// link does what the command is for.
func (o *linkOptions) link(w world, word string) error {
	client, err := findLinkClient(word)
	if err != nil {
		return err
	}
	path := o.file
	if path == "" {
		if path, err = client.where(runtime.GOOS, w.env); err != nil {
			return err
		}
	}
	to, from, err := o.target(w, &client)
	if err != nil {
		return err
	}
	entry, err := client.entry(path, to)
	if err != nil {
		return err
	}
	name := linkEntry
	if o.server != "" {
		name += "-" + o.server
	}
	was, err := readLinkFile(path)
	if err != nil {
		return err
	}
	edited, change, err := editEntry(was.text, client.key, name, entry)
	done := linked{Client: client.word, File: path, Entry: name, Change: change, DryRun: o.dryRun, Value: entry}
	switch {
	case err != nil:
		done.printEntry(w)
		return fmt.Errorf("%s: %w; nothing was written: add the entry to %q yourself", path, err, client.key)
	case change == linkReplaced && !o.force:
		return fmt.Errorf("%s has another entry named %s, and nothing was written: look at it, then say --force to replace it", path, name)
	case len(edited) > maxConfigBytes:
		return fmt.Errorf("%s would have %d bytes; at most %d are read", path, len(edited), maxConfigBytes)
	}
	if !o.dryRun && change != linkNone {
		if done.Backup, err = was.replace(edited); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(w.stdout, withVersion{schemaVersion, done})
	}
	done.print(w, &client)
	if !o.dryRun {
		done.next(w, &client, to, from)
	}
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// target is how the client shall reach the gateway, and the configuration that says so, for people.
func (o *linkOptions) target(w world, client *linkClient) (to linkTarget, from string, err error) {
	switch {
	case o.http && o.stdio:
		return to, "", errors.New("--http and --stdio do not go together")
	case o.variable != "" && !variableName.MatchString(o.variable):
		return to, "", fmt.Errorf("--token-env %q is no name of a variable: name the variable, and never the token itself", visible.Clip(o.variable, maxTold))
	}
	loaded, from, err := load(w, &o.options)
	if err != nil {
		return to, "", err
	}
	to = linkTarget{http: o.http || client.http && !o.stdio, variable: o.variable}
	if to.http {
		to.url, err = o.endpoint(loaded)
		return to, from, err
	}
	if o.server != "" {
		return to, "", errors.New("--server names an endpoint that is reached by HTTP: say --http too")
	}
	if from == embeddedDemo {
		return to, "", errors.New("a client starts pgfsm in any folder, so its entry must name a configuration: pgfsm init writes one, or say -c FILE")
	}
	if from, err = filepath.Abs(from); err != nil {
		return to, "", err
	}
	if to.command, err = os.Executable(); err != nil {
		return to, "", err
	}
	if builtForOnce(to.command) {
		return to, "", errors.New("this pgfsm was built by go run and is gone afterwards: go install it, and run that one")
	}
	to.args = []string{"serve", "--stdio", "-c", from}
	return to, from, nil
}

// builtForOnce reports whether go run made an executable, which removes it afterwards.
func builtForOnce(path string) bool { return strings.Contains(filepath.ToSlash(path), "/go-build") }

// endpoint is the URL of the gateway, or of one server of it.
func (o *linkOptions) endpoint(loaded *config.Loaded) (string, error) {
	listen := loaded.Serve.Listen
	if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
		return "", fmt.Errorf("serve.listen is %s, which is another port each time: give it a port, so that a client can find it", listen)
	}
	if o.server == "" {
		return "http://" + listen + "/mcp", nil
	}
	var names []string
	for _, s := range loaded.Servers {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, o.server) {
		return "", fmt.Errorf("--server %q: no server of that name is configured; configured are %s", o.server, strings.Join(names, ", "))
	}
	return "http://" + listen + "/servers/" + o.server + "/mcp", nil
}

// linked is what was done, or would be.
type linked struct {
	Client string         `json:"client"`
	File   string         `json:"file"`
	Entry  string         `json:"entry"`
	Change string         `json:"change"` // linkNone, linkAdded, linkReplaced
	DryRun bool           `json:"dry_run"`
	Backup string         `json:"backup,omitzero"`
	Value  jsontext.Value `json:"value"`
}

// withVersion is a document of the command.
type withVersion struct {
	SchemaVersion int `json:"schema_version"`
	linked        `json:",inline"`
}

// print shows the entry as a change of the file. Nothing else of the file is shown, for secrets may stand anywhere in it.
func (d *linked) print(w world, client *linkClient) {
	path := visible.Text(d.File)
	switch {
	case d.Change == linkNone:
		fmt.Fprintf(w.stdout, "%s has this entry already; nothing was written\n", path)
		return
	case d.DryRun:
		fmt.Fprintf(w.stdout, "%s, in %s (nothing was written):\n", path, client.key)
	default:
		fmt.Fprintf(w.stdout, "%s, in %s:\n", path, client.key)
	}
	if d.Change == linkReplaced {
		fmt.Fprintf(w.stdout, "- %q: … (what stood there is not shown: it may hold secrets)\n", d.Entry)
	}
	d.printEntry(w)
}

// printEntry shows the entry alone.
func (d *linked) printEntry(w world) {
	shown := d.Value.Clone()
	if err := shown.Indent(); err != nil {
		panic("the entry that was made is no JSON: " + err.Error())
	}
	for line := range strings.Lines(fmt.Sprintf("%q: %s", d.Entry, shown)) {
		fmt.Fprintf(w.stdout, "+ %s\n", shownLine(line))
	}
}

// shownLine is a line of JSON fit to be printed, with its indentation.
func shownLine(line string) string {
	line = strings.TrimSuffix(line, "\n")
	text := strings.TrimLeft(line, "\t")
	return strings.Repeat("  ", len(line)-len(text)) + visible.Text(text)
}

// next says what is left to do.
func (d *linked) next(w world, client *linkClient, to linkTarget, from string) {
	if d.Backup != "" {
		fmt.Fprintf(w.stderr, "pgfsm: the file as it was is %s\n", visible.Text(d.Backup))
	}
	title := client.title(d.File)
	switch {
	case !to.http:
		fmt.Fprintf(w.stderr, "pgfsm: %s starts pgfsm itself: restart %s\n", title, title)
	case from == embeddedDemo:
		fmt.Fprintf(w.stderr, "pgfsm: start pgfsm serve, then restart %s\n", title)
	default:
		fmt.Fprintf(w.stderr, "pgfsm: start pgfsm serve -c %s, then restart %s\n", visible.Text(from), title)
	}
	if to.variable != "" {
		fmt.Fprintf(w.stderr, "pgfsm: %s takes the token from %s: set that where it is started (pgfsm token create --role agent makes one)\n",
			title, to.variable)
	}
}
