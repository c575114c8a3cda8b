package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"pgfsm/internal/identity"
	"pgfsm/internal/oauth"
	"pgfsm/internal/visible"
)

// maxMetadataBytes bounds a metadata document.
const maxMetadataBytes = 1 << 20

// maxShown bounds the part of a document that an error repeats, in bytes.
const maxShown = 200

// Endpoints are the endpoints of an authorization server.
type Endpoints struct {
	Authorization string `json:"authorization_endpoint"`
	Revocation    string `json:"revocation_endpoint"`
	Token         string `json:"token_endpoint"`
}

// Metadata is what pgfsm uses of an authorization server's metadata (RFC 8414).
type Metadata struct {
	Endpoints        `json:",inline"`
	Registration     string   `json:"registration_endpoint"`
	Issuer           string   `json:"issuer"`
	ChallengeMethods []string `json:"code_challenge_methods_supported"`
	AuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	Scopes           []string `json:"scopes_supported"`
	NamesIssuer      bool     `json:"authorization_response_iss_parameter_supported"`
	Documents        bool     `json:"client_id_metadata_document_supported"`
}

// The ways in which a client sends its secret (RFC 7591, section 2).
const (
	secretBasic = "client_secret_basic"
	secretPost  = "client_secret_post"
)

// secretMethod returns the way in which the issuer accepts a client's secret. Without metadata that is
// client_secret_basic (RFC 8414, section 2).
func (m *Metadata) secretMethod() string {
	if slices.Contains(m.AuthMethods, secretPost) && !slices.Contains(m.AuthMethods, secretBasic) {
		return secretPost
	}
	return secretBasic
}

// Resource is what pgfsm uses of an MCP server's metadata (RFC 9728).
type Resource struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"` // if the server's challenge names scopes, those
}

// Covers reports whether the metadata is about a server: the resource is the server's URL, or begins it.
func (r *Resource) Covers(server string) bool {
	of, err := url.Parse(r.Resource)
	if err != nil || of.RawQuery != "" || of.Fragment != "" {
		return false
	}
	at, err := url.Parse(server)
	if err != nil || of.Scheme != at.Scheme || of.Host != at.Host {
		return false
	}
	path := strings.TrimSuffix(of.EscapedPath(), "/")
	return at.EscapedPath() == path || strings.HasPrefix(at.EscapedPath(), path+"/")
}

// checkResource returns the metadata of the MCP server. It must name the pinned issuer, among others or alone.
func (s *Server) checkResource(ctx context.Context) (*Resource, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	r, err := FetchResource(ctx, s.HTTP, s.URL)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(r.Issuers, s.Issuer):
		return nil, fmt.Errorf("the metadata of the server does not name the issuer of the configuration, %s", s.Issuer)
	case r.Resource != s.URL && r.Resource != s.Resource:
		return nil, errors.New("the metadata of the server is about another resource than the configuration's")
	}
	return r, nil
}

// FetchResource fetches the metadata of an MCP server: from the address that the server names when it refuses a request
// without a token, or from the well-known addresses. Scopes that the server names then count in place of the metadata's.
func FetchResource(ctx context.Context, h *http.Client, server string) (*Resource, error) {
	u, err := url.Parse(server)
	if err != nil || !identity.AllowedURL(server, true) {
		return nil, errors.New("the URL of the server is not https, or http on this machine")
	}
	wellKnown := u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource"
	addresses := []string{wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), wellKnown + u.EscapedPath(), wellKnown}
	named, scope := challenge(ctx, h, server)
	if identity.AllowedURL(named, u.Scheme == "http") {
		addresses = append([]string{named}, addresses...)
	}
	r := new(Resource)
	if err := fetchFirst(ctx, h, addresses, r); err != nil {
		return nil, fmt.Errorf("the metadata of the server (RFC 9728) cannot be read: %w", err)
	}
	if asked := strings.Fields(scope); len(asked) > 0 {
		r.Scopes = asked
	}
	return r, nil
}

// challenge returns the address of the metadata and the scopes in the header WWW-Authenticate with which a server refuses
// a request without a token; empty if it names none. The request asks for the list of tools, because some servers let
// everybody initialize. A server of type sse answers only GET.
func challenge(ctx context.Context, h *http.Client, server string) (metadata, scope string) {
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		r, err := http.NewRequestWithContext(ctx, method, server, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			break
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		response, err := h.Do(r)
		if err != nil {
			break
		}
		response.Body.Close()
		if response.StatusCode == http.StatusUnauthorized {
			return oauth.Challenge(response.Header, "resource_metadata"), oauth.Challenge(response.Header, "scope")
		}
	}
	return "", ""
}

// metadata returns the endpoints of the pinned issuer: those of the operator, or those of its metadata.
func (s *Server) metadata(ctx context.Context) (*Metadata, error) {
	if s.Endpoints != (Endpoints{}) {
		return &Metadata{Endpoints: s.Endpoints}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil && time.Since(s.fetched) < metadataAge {
		return s.found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	m, err := FetchMetadata(ctx, s.HTTP, s.Issuer)
	if err == nil {
		s.found, s.fetched = m, time.Now()
	}
	return m, err
}

// FetchMetadata fetches the metadata of an issuer, which must be good for connections: it names exactly this issuer,
// supports PKCE with S256, and has its endpoints at https.
func FetchMetadata(ctx context.Context, h *http.Client, issuer string) (*Metadata, error) {
	u, err := url.Parse(issuer)
	if err != nil || !identity.AllowedURL(issuer, true) || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the issuer is no https URL without query and fragment")
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	addresses := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
		origin + path + "/.well-known/openid-configuration",
	}
	m := new(Metadata)
	if err := fetchFirst(ctx, h, slices.Compact(addresses), m); err != nil {
		return nil, fmt.Errorf("the metadata of the issuer (RFC 8414) cannot be read: %w", err)
	}
	switch {
	case m.Issuer != issuer:
		return nil, fmt.Errorf("the metadata names the issuer %q, not %q; both must be the same, character by character",
			visible.Clip(m.Issuer, maxShown), issuer)
	case !slices.Contains(m.ChallengeMethods, "S256"):
		return nil, errors.New("the issuer's metadata does not list PKCE with S256 (RFC 7636)")
	case m.Authorization == "" || m.Token == "":
		return nil, errors.New("the issuer's metadata has no authorization endpoint or no token endpoint")
	}
	for _, endpoint := range []string{m.Authorization, m.Token, m.Revocation, m.Registration} {
		// An issuer on another machine cannot point to this one.
		if endpoint != "" && !identity.AllowedURL(endpoint, u.Scheme == "http") {
			return nil, errors.New("the issuer's metadata has an endpoint that is no https URL")
		}
	}
	return m, nil
}

// fetchFirst reads the first of some documents that exists. A document that exists and is wrong is not skipped.
func fetchFirst(ctx context.Context, h *http.Client, addresses []string, into any) (err error) {
	for _, address := range slices.Compact(addresses) {
		var doc []byte
		if doc, err = identity.Fetch(ctx, h, address, maxMetadataBytes); err != nil {
			continue
		}
		if json.Unmarshal(doc, into) != nil {
			return fmt.Errorf("GET %s: it is not strict JSON of the expected form", address)
		}
		return nil
	}
	return err
}

// Register registers a client at an issuer (RFC 7591). Only an operator does that, once: see pgfsm connections register.
func Register(ctx context.Context, h *http.Client, m *Metadata, redirect string, scopes []string) (id, secret string, err error) {
	method := "none"
	if !slices.Contains(m.AuthMethods, method) {
		method = m.secretMethod()
	}
	got, err := oauthex.RegisterClient(ctx, m.Registration, &oauthex.ClientRegistrationMetadata{
		ClientName:              "pgfsm",
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: method,
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		Scope:                   strings.Join(scopes, " "),
		ApplicationType:         "web",
	}, h)
	var refused *oauthex.ClientRegistrationError
	switch {
	case errors.As(err, &refused):
		return "", "", fmt.Errorf("the issuer refused the registration: %s", visible.Clip(refused.Error(), maxShown))
	case err != nil:
		return "", "", errors.New("the registration endpoint did not answer with a client")
	}
	return got.ClientID, got.ClientSecret, nil
}
