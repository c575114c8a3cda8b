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

	"pgfsm/internal/cli"
	"pgfsm/internal/clientfile"
	"pgfsm/internal/config"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
)

// linkOptions are the flags of link.
type linkOptions struct {
	options
	dryRun, http, stdio, force, replace bool
	server, variable, file              string

	hooks, acceptFailOpen bool
	tokenFile             string
}

func newLink(w world) *cobra.Command {
	var o linkOptions
	cmd := newCommand("link {claude|cursor|vscode|gemini|codex|windsurf|zed|other}", cobra.ExactArgs(1), func(cmd *cobra.Command, words []string) error {
		if err := notEmpty(cmd, "server", "token-env", "file", "token-file"); err != nil {
			return err
		}
		if o.hooks {
			return o.linkHooks(cmd.Context(), w, words[0])
		}
		if o.tokenFile != "" || o.acceptFailOpen {
			return errors.New("--token-file and --accept-fail-open belong to --hooks")
		}
		return o.linkClient(w, words[0])
	})

	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the entry, and write nothing")
	cmd.Flags().BoolVar(&o.http, "http", false, "let the client connect to serve.public_url or serve.listen")
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "let the client start pgfsm itself")
	cmd.Flags().StringVar(&o.server, "server", "", "the endpoint of one server, by its `NAME`")
	cmd.Flags().StringVar(&o.variable, "token-env", "", "the variable of the client's environment that holds its token, by its `NAME`")
	cmd.Flags().StringVar(&o.file, "file", "", "another `FILE` of the client, like .mcp.json of Claude Code")
	cmd.Flags().BoolVar(&o.force, "force", false, "replace another entry of the same name")
	cmd.Flags().BoolVar(&o.replace, "replace", false,
		"remove the entries of servers that the gateway serves; FILE.bak keeps them")

	cmd.Flags().BoolVar(&o.hooks, "hooks", false, "let the client ask the gateway before its own tools run")
	cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "with --hooks, the `FILE` that holds the token of the role hook")
	cmd.Flags().BoolVar(&o.acceptFailOpen, "accept-fail-open", false,
		"with --hooks, accept that the client lets a call run whose hook does not answer")

	return cmd
}

// linkDocument is the --json form of the change that link made, or would make.
type linkDocument struct {
	SchemaVersion int      `json:"schema_version"`
	Client        string   `json:"client"`
	File          string   `json:"file"`
	Entry         string   `json:"entry"`
	Change        string   `json:"change"` // none, added or replaced
	DryRun        bool     `json:"dry_run"`
	Backup        string   `json:"backup,omitzero"`
	Removed       []string `json:"removed,omitzero"` // removed entries
	// Entries that reach a server of the gateway directly.
	Bypass []string `json:"bypass,omitzero"`
	// Entries for servers that the gateway does not have.
	Others []string       `json:"others,omitzero"`
	Value  jsontext.Value `json:"value"`
}

func (o *linkOptions) linkClient(w world, name string) error {
	client, err := clientfile.Find(name)
	if err != nil {
		return fmt.Errorf("%w%s", err, didYouMean(name, clientfile.Names()))
	}
	path := o.file
	if path == "" {
		if path, err = client.Path(runtime.GOOS, w.env); err != nil {
			return err
		}
	}

	loaded, source, err := loadConfig(w, &o.options)
	if err != nil {
		return err
	}
	target, err := o.gatewayTarget(loaded, source, client)
	if err != nil {
		return err
	}

	d := linkDocument{
		SchemaVersion: cli.SchemaVersion,
		Client:        client.Name,
		File:          path,
		Entry:         linkName,
		DryRun:        o.dryRun || client.Paste,
	}
	if o.server != "" {
		d.Entry += "-" + o.server
	}
	if d.Value, err = client.Entry(path, target); err != nil {
		return err
	}

	// The operator pastes the entry into the files of some clients.
	if client.Paste {
		d.Change = clientfile.Added
		if err := d.printChange(w, client, o.json); err != nil || o.json {
			return err
		}
		d.printNext(w, client.Title(path), target, source)
		return nil
	}

	file, err := clientfile.Read(path)
	if err != nil {
		return err
	}

	// Other entries of the file may reach the same servers without the gateway.
	d.Bypass, d.Others = file.Direct(client.Key, linkName, loaded.Serve.PublicOrigin(), gatewayServers(loaded, ""))
	if o.replace {
		d.Removed, _ = file.Direct(client.Key, linkName, loaded.Serve.PublicOrigin(), gatewayServers(loaded, o.server))
		d.Bypass = slices.DeleteFunc(d.Bypass, func(name string) bool { return slices.Contains(d.Removed, name) })
	}

	edited, change, err := file.Set(client.Key, d.Entry, d.Value, d.Removed...)
	switch d.Change = change; {
	case err != nil:
		d.printEntry(w, client)
		return fmt.Errorf("%s: %w; nothing was written: add the entry to %q yourself", path, err, client.Key)
	case change == clientfile.Replaced && !o.force:
		return fmt.Errorf("%s has another entry named %s, and nothing was written: look at it, then say --force to replace it", path, d.Entry)
	}

	if !o.dryRun && (change != clientfile.Same || len(d.Removed) > 0) {
		if d.Backup, err = file.Write(edited); err != nil {
			return err
		}
	}
	if err := d.printChange(w, client, o.json); err != nil || o.json {
		return err
	}
	if !o.dryRun {
		d.printNext(w, client.Title(path), target, source)
	}
	d.printBypass(w)
	return nil
}

// linkName is the name of the gateway's entry, and the prefix of the names of entries for one
// server.
const linkName = "pgfsm"

// gatewayServers returns the servers of the gateway, or only the one with a name.
func gatewayServers(loaded *config.Loaded, name string) (servers []clientfile.Server) {
	for _, s := range loaded.Servers {
		if s.Type != config.TypeClient && (name == "" || s.Name == name) {
			servers = append(servers, clientfile.Server{
				Name:    s.Name,
				URL:     s.URL,
				Command: s.Command,
				Args:    s.Args,
			})
		}
	}
	return servers
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// gatewayTarget returns the command or the URL with which the client reaches the gateway of the
// configuration in the file source.
func (o *linkOptions) gatewayTarget(loaded *config.Loaded, source string, client *clientfile.Client) (target clientfile.Target,
	err error) {
	switch {
	case o.http && o.stdio:
		return target, errors.New("--http and --stdio do not go together")
	case o.variable != "" && !variableName.MatchString(o.variable):
		return target, fmt.Errorf("--token-env %q is no name of a variable: name the variable, and never the token itself", visible.Clip(o.variable, maxTold))
	}

	target = clientfile.Target{Token: o.variable, TokenVariable: tokenVariable}
	if o.http || client.HTTP && !o.stdio {
		target.URL, err = o.endpointURL(loaded)
		return target, err
	}
	if o.server != "" {
		return target, errors.New("--server names an endpoint that is reached by HTTP: say --http too")
	}
	if source == setup.EmbeddedDemo {
		return target, errors.New("a client starts pgfsm in any folder, so its entry must name a configuration: pgfsm init writes one, or say -c FILE")
	}
	if source, err = filepath.Abs(source); err != nil {
		return target, err
	}
	target.Args = []string{"serve", "--stdio", "-c", source}
	target.Command, err = ownProgram()
	return target, err
}

// ownProgram returns the path of this program, for a client that starts it.
func ownProgram() (string, error) {
	path, err := os.Executable()
	if strings.Contains(filepath.ToSlash(path), "/go-build") {
		err = errors.New("this pgfsm was built by go run and is gone afterwards: go install it, and run that one")
	}
	return path, err
}

// endpointURL returns the URL of the gateway, or of one of its servers.
func (o *linkOptions) endpointURL(loaded *config.Loaded) (string, error) {
	listen := loaded.Serve.Listen
	if _, port, err := net.SplitHostPort(listen); loaded.Serve.PublicURL == "" && (err != nil || port == "0") {
		return "", fmt.Errorf("serve.listen is %s, which is another port each time: give it a port, so that a client can find it", listen)
	}
	if o.server == "" {
		return loaded.Serve.PublicOrigin() + "/mcp", nil
	}
	var names []string
	for _, s := range loaded.Servers {
		switch {
		case s.Type != config.TypeClient:
			names = append(names, s.Name)
		case s.Name == o.server:
			return "", fmt.Errorf("--server %q is a coding agent (kind: client), which executes its tools itself; it is no MCP server to link to", o.server)
		}
	}
	if !slices.Contains(names, o.server) {
		return "", fmt.Errorf("--server %q: no server of that name is configured; configured are %s", o.server,
			strings.Join(names, ", "))
	}
	return loaded.Serve.PublicOrigin() + "/servers/" + o.server + "/mcp", nil
}

// printChange shows the entry as a change of the file. It shows no other part of the file, because
// any part may contain secrets.
func (d *linkDocument) printChange(w world, client *clientfile.Client, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w.stdout, d)
	}
	path, note := visible.Text(d.File), ""
	if d.Change == clientfile.Same && len(d.Removed) == 0 {
		fmt.Fprintf(w.stdout, "%s has this entry already; nothing was written\n", path)
		return nil
	}

	switch {
	case client.Paste:
		path, note = "paste these lines into "+path, "; link writes nothing"
	case d.DryRun:
		note = " (nothing was written)"
	}

	fmt.Fprintf(w.stdout, "%s, in %s%s:\n", path, client.Key, note)
	if d.Change == clientfile.Replaced {
		fmt.Fprintf(w.stdout, "- %q: … (what stood there is not shown: it may hold secrets)\n", d.Entry)
	}

	for _, name := range d.Removed {
		fmt.Fprintf(w.stdout, "- %q: …\n", name)
	}

	if d.Change != clientfile.Same {
		d.printEntry(w, client)
	}

	return nil
}

// printEntry prints the entry only.
func (d *linkDocument) printEntry(w world, client *clientfile.Client) {
	sign := "+ "
	if client.Paste {
		sign = ""
	}
	for line := range strings.Lines(client.Lines(d.Entry, d.Value)) {
		fmt.Fprintf(w.stdout, "%s%s", sign, visible.Lines(line))
	}
}

// printBypass prints the entries with which the client still reaches servers directly.
func (d *linkDocument) printBypass(w world) {
	if len(d.Bypass) > 0 {
		w.warn("these entries still bypass the gateway: " + strings.Join(d.Bypass, ", ") + "; --replace removes them")
	}
	if len(d.Others) > 0 {
		w.warn("the client still reaches these entries directly, because the gateway does not have their servers: " +
			strings.Join(d.Others, ", "))
	}
}

// printNext prints the remaining steps.
func (d *linkDocument) printNext(w world, client string, target clientfile.Target, source string) {
	if d.Backup != "" {
		fmt.Fprintf(w.stderr, "pgfsm: the file as it was is %s\n", visible.Text(d.Backup))
	}
	switch {
	case target.URL == "":
		fmt.Fprintf(w.stderr, "pgfsm: %s starts pgfsm itself: restart %s\n", client, client)
	case source == setup.EmbeddedDemo:
		fmt.Fprintf(w.stderr, "pgfsm: start pgfsm serve, then restart %s\n", client)
	default:
		fmt.Fprintf(w.stderr, "pgfsm: start pgfsm serve -c %s, then restart %s\n", visible.Text(source), client)
	}
	if target.Token != "" {
		fmt.Fprintf(w.stderr, "pgfsm: %s takes the token from %s: set that where it is started (pgfsm token create --role agent makes one)\n",
			client, target.Token)
	}
}
