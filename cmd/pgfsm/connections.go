package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/identity/connect"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/stores"
)

func newConnections(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("connections", newConnectionsList(f), newConnectionsRevoke(f), newConnectionsReseal(f),
		newConnectionsDiscover(f), newConnectionsRegister(f))
	f.addFlags(cmd)
	return cmd
}

// newConnectionsList needs no token: a user who can read the file can read the rows. Nothing prints credentials.
func newConnectionsList(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
		all, err := o.connectable()
		if err != nil {
			f.w.warn("the list does not say which connections this configuration can use: " + visible.Error(err))
		}
		type connection struct {
			ledger.Connection
			Unusable string `json:"unusable"` // why no call uses it
		}
		rows := []connection{}
		for c, failed := range r.Connections() {
			if failed != nil {
				return failed
			}
			row := connection{Connection: c}
			if o.loaded != nil && err == nil {
				row.Unusable = all.Unusable(r, &c)
			}
			rows = append(rows, row)
		}
		return f.printList(cli.Document("connections", rows), "connections", rows, len(rows), "Nobody has connected an account.")
	})
}

func newConnectionsRevoke(f *ledgerFlags) *cobra.Command {
	var server string
	cmd := f.newManageCommand("revoke [PERSON]", cobra.MaximumNArgs(1), stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error {
			ended, err := o.RevokeConnections(ctx, caller, strings.Join(args, ""), server)
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("revoked", ended), templatePrinter("revoked", ended))
		})
	cmd.Flags().StringVar(&server, "server", "", "only connections to this server, which may be one that the configuration does not name any more")
	return cmd
}

// connectable returns what the configuration says of people's connections; nil if there is none.
func (o *openedLedger) connectable() (*api.Connectable, error) {
	secrets, err := o.resolveConnections()
	if err != nil || secrets == nil {
		return nil, err
	}
	return setup.Connections(o.loaded, secrets, nil), nil
}

// revokeTokens asks authorization servers to revoke the tokens of connections that a command has ended.
func (o *openedLedger) revokeTokens(ctx context.Context, ended []ledger.Connection) {
	all, err := o.connectable()
	if err := errors.Join(err, all.Revoke(ctx, o.Ledger, ended)); err != nil {
		o.w.warn("the tokens were not revoked at their issuers: " + visible.Error(err))
	}
}

// resolveConnections returns the secrets of people's connections; nil if no configuration has any.
func (o *openedLedger) resolveConnections() (*config.ResolvedConnections, error) {
	if o.loaded == nil {
		return nil, nil
	}
	return o.loaded.ResolveConnections(o.w.getenv, safefile.ReadTrusted)
}

func newConnectionsReseal(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("reseal", cobra.NoArgs, stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) error {
			var keys ledger.SealKeys
			secrets, err := o.resolveConnections()
			if err != nil {
				return err
			}
			if secrets != nil {
				keys = secrets.Keys
			}
			n, err := o.ResealConnections(ctx, caller, keys)
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("resealed", n),
				linePrinter("%s connections are sealed anew; all are sealed with the first key of connections.keys.\n", strconv.Itoa(n)))
		})
}

// A discovered is what an MCP server and its authorization server say of themselves.
type discovered struct {
	Name      string   `json:"name"` // a name for the server
	URL       string   `json:"url"`
	Resource  string   `json:"resource"`
	Issuer    string   `json:"issuer"`
	Others    []string `json:"other_issuers"`
	Scopes    []string `json:"scopes"`
	Register  bool     `json:"registration"`       // the issuer offers dynamic registration
	Documents bool     `json:"metadata_documents"` // the issuer accepts Client ID Metadata Documents
	Public    bool     `json:"public_clients"`     // the issuer accepts clients without a secret
}

func newConnectionsDiscover(f *ledgerFlags) *cobra.Command {
	return newCommand("discover URL", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		h := connect.NewHTTPClient()
		r, err := connect.FetchResource(cmd.Context(), h, args[0])
		if err != nil {
			return err
		}
		if len(r.Issuers) == 0 {
			return errors.New("the metadata of the server names no authorization server")
		}
		if !r.Covers(args[0]) {
			return fmt.Errorf("the metadata of the server is about another resource, %s: tokens for it are not this server's",
				visible.Quote(r.Resource))
		}
		m, err := connect.FetchMetadata(cmd.Context(), h, r.Issuers[0])
		if err != nil {
			return err
		}
		if len(r.Scopes) > 0 && slices.Contains(m.Scopes, scopeOffline) && !slices.Contains(r.Scopes, scopeOffline) {
			r.Scopes = append(r.Scopes, scopeOffline)
		}
		d := &discovered{
			Name:      nameOfHost(args[0]),
			URL:       args[0],
			Resource:  r.Resource,
			Issuer:    m.Issuer,
			Others:    append([]string{}, r.Issuers[1:]...),
			Scopes:    slices.DeleteFunc(append([]string{}, r.Scopes...), func(s string) bool { return !scopeForm.MatchString(s) }),
			Register:  m.Registration != "",
			Documents: m.Documents,
			Public:    slices.Contains(m.AuthMethods, "none"),
		}
		return f.printDocument(cli.Document("discovered", d), templatePrinter("discovered", d))
	})
}

// scopeOffline is the scope with which many issuers grant refresh tokens.
const scopeOffline = "offline_access"

// scopeForm is the form of a scope (RFC 6749, section 3.3).
var scopeForm = regexp.MustCompile(`^[!#-\[\]-~]{1,256}$`)

// nameOfHost proposes a name for the server of a URL: forge for https://mcp.forge.example.
func nameOfHost(text string) string {
	u, err := url.Parse(text)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return "server"
	}
	labels := strings.Split(u.Hostname(), ".")
	return labels[max(0, len(labels)-2)]
}

func newConnectionsRegister(f *ledgerFlags) *cobra.Command {
	return newCommand("register SERVER", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		loaded, _, err := setup.Load(setup.Options{Config: f.config, Getenv: f.w.getenv})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(loaded.Servers, func(u config.Upstream) bool { return u.Name == args[0] })
		switch {
		case i < 0 || loaded.Servers[i].Person == nil || loaded.Servers[i].Person.OAuth == nil:
			return fmt.Errorf("the configuration has no server %q with auth.person.oauth", args[0])
		case loaded.Serve.AdminURL == "":
			return errors.New("set serve.admin_url: the issuer sends people's browsers back there")
		}
		o, h := loaded.Servers[i].Person.OAuth, connect.NewHTTPClient()
		m, err := connect.FetchMetadata(cmd.Context(), h, o.Issuer)
		if err != nil {
			return err
		}
		if m.Registration == "" {
			return errors.New("the issuer offers no dynamic registration (RFC 7591): register the client at its web site")
		}
		redirect := loaded.Serve.AdminURL + api.ConnectedPath + args[0]
		id, secret, err := connect.Register(cmd.Context(), h, m, redirect, o.Scopes)
		if err != nil {
			return err
		}
		return f.printDocument(cli.Document("client_id", id, "client_secret", secret, "redirect_uri", redirect), func(out io.Writer, _ ink) {
			fmt.Fprintf(out, "client_id: %s\n", visible.Quote(id))
			if secret != "" {
				fmt.Fprintf(f.w.stderr, "The client's secret follows. It cannot be shown again: keep it in a file, and name the file in client_secret.\n")
				fmt.Fprintln(out, secret)
			}
		})
	})
}
