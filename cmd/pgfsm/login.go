package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
)

// loginOptions are the flags of login.
type loginOptions struct {
	options
	issuer string
	device bool
}

func newLogin(w world) *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:  "login",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, _, err := load(w, &o.options)
			if err != nil {
				return err
			}
			c, err := setup.Login(loaded, o.issuer)
			if err != nil {
				return err
			}
			var token string
			if o.device {
				token, err = c.Device(cmd.Context(), func(at, code string) error {
					_, err := fmt.Fprintf(w.stderr, "Open %s and enter the code %s\n", visible.Text(at), visible.Text(code))
					return err
				})
			} else {
				token, err = c.Browser(cmd.Context(), func(at string) error {
					_, err := fmt.Fprintf(w.stderr, "Open this URL in a browser on this machine:\n%s\n", at)
					return err
				})
			}
			if err != nil {
				return err
			}
			return w.print(o.json, cli.Document("token", token), cli.ExitYes, func(out io.Writer, _ ink) { fmt.Fprintln(out, token) })
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.issuer, "issuer", "", "the issuer to sign in at (default: the only one that has login.cli)")
	cmd.Flags().BoolVar(&o.device, "device", false, "sign in on another device")
	return cmd
}
