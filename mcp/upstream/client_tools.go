package upstream

import "time"

// clientToolReason is the reason of [CodeClientTool].
const clientToolReason = "its tools belong to a coding agent, which executes them itself; pgfsm never calls them"

// ClientProtocol is the MCP revision whose form the tools of clients have.
const ClientProtocol = "2025-11-25"

// newClientTools returns the listing of a client, which never changes.
func (c *common) newClientTools(s Server) *CachedListing {
	return &CachedListing{At: time.Now(), Listing: Listing{
		Server:   s.Name,
		Status:   StatusUp,
		Protocol: ClientProtocol,
		Pages:    [][]byte{s.ToolList},
		Number:   c.moments.Add(1),
	}}
}

// ClientTools returns the tools of a server of [TypeClient]; nil for other servers, and for unknown
// ones. No connection is made.
func (u *Upstreams) ClientTools(server string) *CachedListing {
	if up := u.byName[server]; up != nil {
		return up.clientTools
	}
	return nil
}
