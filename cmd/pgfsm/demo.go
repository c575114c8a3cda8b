package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/mcp/demo"
)

func newDemo(w world) *cobra.Command {
	var asJSON bool
	addrs := []string{"127.0.0.1:5101", "127.0.0.1:5102", "127.0.0.1:5103"}
	cmd := newCommand("demo", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		fleet, err := demo.Listen(cmd.Context(), addrs)
		if err != nil {
			return err
		}
		if err := printServers(w, fleet, asJSON); err != nil {
			return errors.Join(err, fleet.Close())
		}
		<-cmd.Context().Done()
		return fleet.Close()
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document, then serve")
	cmd.Flags().StringSliceVar(&addrs, "listen", addrs,
		"the three loopback addresses, one a server; port 0 takes a free port")
	return cmd
}

// printServers prints the addresses of the servers.
func printServers(w world, fleet *demo.Fleet, asJSON bool) error {
	type served struct {
		Name string `json:"name"`
		SSE  string `json:"sse"`
		HTTP string `json:"http"`
	}
	var servers []served
	for _, s := range fleet.Servers() {
		servers = append(servers, served{s.Name(), fleet.URL(s.Name(), "sse"), fleet.URL(s.Name(), "mcp")})
	}
	if asJSON {
		return cli.PrintJSON(w.stdout, cli.Document("servers", servers))
	}
	for _, s := range servers {
		if _, err := fmt.Fprintf(w.stdout, "%s %s %s\n", s.Name, s.SSE, s.HTTP); err != nil {
			return err
		}
	}
	return nil
}
