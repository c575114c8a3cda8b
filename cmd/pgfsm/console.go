package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/stores"
)

// consoleOptions are the flags of console.
type consoleOptions struct {
	ledgerFlags
	url  string
	open bool
}

func newConsole(w world) *cobra.Command {
	o := consoleOptions{ledgerFlags: ledgerFlags{w: w}}
	cmd := newCommand("console", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		address, err := o.adminAddress(cmd)
		if err != nil {
			return err
		}
		return o.withLedger(stores.ToChange, func(l *openedLedger) error { return o.signIn(cmd.Context(), l, address) })
	})
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.url, "url", "",
		"scheme, host and port of the console (default: the configuration's serve.admin_url, or its serve.admin)")
	cmd.Flags().BoolVar(&o.open, "open", false, "open the browser instead of printing the link")
	return cmd
}

// adminAddress returns the URL of the console's listener.
func (o *consoleOptions) adminAddress(cmd *cobra.Command) (string, error) {
	if err := notEmpty(cmd, "url"); err != nil {
		return "", err
	}
	if o.url == "" {
		if o.ledger != "" && o.config == "" {
			return "http://" + defaultAdmin, nil
		}
		loaded, _, err := loadConfig(o.w, &options{config: o.config})
		if err != nil {
			return "", err
		}
		return loaded.Serve.AdminOrigin(), nil
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery+u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("--url %q: give the scheme, the host and the port, as in https://approvals.example.com",
			visible.Text(o.url))
	}
	return u.Scheme + "://" + u.Host, nil
}

// signIn creates a link, and prints it or opens it in the browser.
func (o *consoleOptions) signIn(ctx context.Context, l *openedLedger, address string) error {
	who, err := l.authorizeCaller(ctx, ledger.ActRead)
	if err != nil {
		return err
	}
	secret, err := l.NewLink(ctx, who)
	if err != nil {
		return err
	}
	link := address + api.LinkPath + secret
	if o.open {
		return o.openBrowser(ctx, l, link, secret)
	}
	return o.printDocument(cli.Document("url", link, "name", who.Name), linePrinter("%s\n", link))
}

// openBrowser opens a file that leads to the link, because other users of the machine can read the
// arguments of a program.
func (o *consoleOptions) openBrowser(ctx context.Context, l *openedLedger, link, secret string) (err error) {
	dir, err := os.MkdirTemp("", "pgfsm-console-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, target := filepath.Join(dir, "sign-in.html"), html.EscapeString(link)
	page := `<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>pgfsm</title>` +
		`<meta http-equiv="refresh" content="0; url=` + target + `"><a href="` + target + `">Sign in</a>` + "\n"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	words := append(browserCommand(o.w), file)
	if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("the browser cannot be opened (%w: %s); pgfsm console without --open prints the link", err,
			visible.Clip(string(out), maxTold))
	}

	fmt.Fprintln(o.w.stderr, "pgfsm: sign in in the browser; the link works for a minute")
	err = ledger.Poll(ctx, ledger.PollInterval, func() (bool, error) {
		_, err := l.Link(ctx, secret)
		if errors.Is(err, ledger.ErrSession) { // the link was used or has expired
			return true, nil
		}
		return false, err
	})

	return unlessEnded(ctx, err)
}

// browserCommand returns the command that opens a file in the browser.
func browserCommand(w world) []string {
	switch program := w.env("BROWSER"); {
	case program != "":
		return []string{program}
	case runtime.GOOS == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	case runtime.GOOS == "darwin":
		return []string{"open"}
	}
	return []string{"xdg-open"}
}
