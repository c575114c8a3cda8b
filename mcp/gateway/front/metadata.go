package front

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"pgfsm/mcp/wire"
)

// Metadata tells OAuth clients which authorization servers issue tokens for the gateway (RFC 9728).
type Metadata struct {
	PublicURL string   // scheme and host of the gateway for clients
	Issuers   []string // URLs of the authorization servers
	Scopes    []string // required scopes of every token
}

// pathMetadata is the prefix of metadata paths. The path of an endpoint follows it.
const pathMetadata = "/.well-known/oauth-protected-resource"

// Resources returns a function that names the resources for which the token of a request may be
// issued: the URL of the endpoint. At a path that is no endpoint, such as that of a run's status,
// these are the URLs of all endpoints.
func Resources(publicURL string, servers []string) func(*http.Request) []string {
	byPath := endpointServers(servers)
	var urls []string
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		urls = append(urls, publicURL+path)
	}
	return func(r *http.Request) []string {
		path := endpointPath(r.URL.EscapedPath())
		if _, ok := byPath[path]; ok {
			return []string{publicURL + path}
		}
		return urls
	}
}

// endpointPath returns the path of a request at an endpoint. For other requests it returns the
// endpoint of all servers.
func (f *settings) endpointPath(r *http.Request) string {
	path := endpointPath(r.URL.EscapedPath())
	if _, ok := f.endpoints[path]; ok {
		return path
	}
	return pathMCP
}

// serveMetadata answers with the metadata of an endpoint, to clients that have no token yet.
func (x *exchange) serveMetadata(path string) *refusal {
	if _, ok := x.settings.endpoints[path]; !ok {
		return newRefusal(http.StatusNotFound, refusedPath, "no endpoint has this path")
	}
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		return notAllowed("GET, HEAD")
	}

	m := x.settings.Metadata
	var b wire.Object
	b.Add("resource", wire.Quote(m.PublicURL+path))
	b.Add("authorization_servers", wire.Texts(m.Issuers))
	if len(m.Scopes) > 0 {
		b.Add("scopes_supported", wire.Texts(m.Scopes))
	}
	b.Add("bearer_methods_supported", wire.Texts([]string{"header"}))
	x.writeJSON(http.StatusOK, b.Value())
	return nil
}

// Errors of challenges (RFC 6750 section 3.1).
const (
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// challenge returns the value of the header WWW-Authenticate (RFC 6750 section 3,
// RFC 9728 section 5.1). The failure is empty if the request had no token.
func (x *exchange) challenge(failure string) string {
	m := x.settings.Metadata
	if m == nil {
		return "Bearer"
	}

	params := []string{`resource_metadata="` + m.PublicURL + pathMetadata + x.settings.endpointPath(x.r) + `"`}
	if len(m.Scopes) > 0 {
		params = append(params, `scope="`+strings.Join(m.Scopes, " ")+`"`)
	}
	if failure != "" {
		params = append(params, `error="`+failure+`"`)
	}
	return "Bearer " + strings.Join(params, ", ")
}
