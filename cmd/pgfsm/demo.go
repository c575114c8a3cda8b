package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/mcp/toy"
)

func newDemo(w world) *cobra.Command {
	addrs := []string{"127.0.0.1:5101", "127.0.0.1:5102", "127.0.0.1:5103"}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Serve the three demo MCP servers on loopback until interrupted",
		Long: `demo serves mcp-sharepoint, mcp-servicenow and mcp-policy-kb, each on one port: SSE at /sse and
streamable HTTP at /mcp.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fleet, err := toy.Listen(cmd.Context(), addrs)
			if err != nil {
				return err
			}
			for _, s := range fleet.Servers() {
				fmt.Fprintf(w.stdout, "%s %s %s\n", s.Name(), fleet.URL(s.Name(), "sse"), fleet.URL(s.Name(), "mcp"))
			}
			<-cmd.Context().Done()
			return fleet.Close()
		},
	}
	cmd.Flags().StringSliceVar(&addrs, "listen", addrs,
		"the three loopback addresses, one a server; port 0 takes a free one")
	return cmd
}
