// Package identity verifies the tokens of identity providers: access tokens (JWT, RFC 9068) of
// agents at the gateway and of people at the admin address, and id tokens when people sign in.
//
// go-jose verifies signatures and nothing else. The rules around it are this package's, because
// go-oidc's verifier reads responses without a bound, repeats them in errors, keeps keys that the
// provider removed, fetches at every unknown key id, accepts a second issuer for Google, and has a
// leeway of five minutes.
//
// No error and no log line of this package has text of a token.
package identity

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultMaxAge is the time for which fetched keys may be used if the issuer does not say.
const DefaultMaxAge = time.Hour

// Issuer has the settings of an identity provider.
type Issuer struct {
	URL        string
	Audiences  Audiences
	TokenTypes []string // values of typ of access tokens; none: at+jwt and JWT
	People     []string // client ids whose tokens are people; all others are agents
	Subject    string   // JSON Pointer to the subject in a token, and in its act; empty: /sub
	// JSON Pointer to the groups in a token, through objects only; empty: they are unknown.
	Groups string
	// JSON Pointer to the display name in a token, and in its act; empty: there are no display
	// names.
	Display string
	Claims  []ClaimPath
	MaxAge  time.Duration // the time for which fetched keys may be used; 0: DefaultMaxAge
}

// Audiences are accepted beside the URLs of endpoints.
type Audiences struct{ MCP, Admin []string }

// ClaimPath is a JSON Pointer into a token, under the name that conditions use.
type ClaimPath struct{ Name, Path string }

// Options are the settings of [New].
type Options struct {
	Issuers []Issuer
	// The client for all requests to providers, which follows no redirects; nil: one with a timeout
	// of 30 seconds.
	Client *http.Client
	Log    *slog.Logger     // nil drops the lines
	Now    func() time.Time // nil: time.Now
}

// Providers verifies the tokens of the configured identity providers.
type Providers struct {
	client   *http.Client
	now      func() time.Time
	all      []*provider // the providers in the order of the configuration
	byIssuer map[string]*provider
}

// New returns the providers without a connection to any of them: a provider may be down when the
// service starts. Package config has checked the issuers' URLs.
func New(o Options) *Providers {
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 30 * time.Second}
	}

	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	if o.Now == nil {
		o.Now = time.Now
	}

	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p := &Providers{client: &client, now: o.Now, byIssuer: map[string]*provider{}}

	for _, issuer := range o.Issuers {
		added := &provider{
			Issuer:   issuer,
			client:   &client,
			log:      o.Log.With("issuer", issuer.URL),
			now:      o.Now,
			fetching: make(chan struct{}, 1),
		}
		added.TokenTypes = nil
		for _, typ := range issuer.TokenTypes {
			added.TokenTypes = append(added.TokenTypes, mediaType(typ))
		}
		if len(added.TokenTypes) == 0 {
			added.TokenTypes = []string{"at+jwt", "jwt"}
		}
		added.Claims = slices.SortedFunc(slices.Values(issuer.Claims),
			func(a, b ClaimPath) int { return strings.Compare(a.Name, b.Name) })
		added.MaxAge = cmp.Or(added.MaxAge, DefaultMaxAge)
		p.all, p.byIssuer[issuer.URL] = append(p.all, added), added
	}

	return p
}

// Run fetches the metadata and keys of each provider, and again every five minutes, until ctx ends.
// Without Run, requests fetch what they need, and keys become unusable by age only.
func (p *Providers) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, provider := range p.all {
		wg.Go(func() { provider.keepFresh(ctx) })
	}
	wg.Wait()
}

// Ready reports whether no provider has keys that were never fetched, or are too old to verify its
// tokens.
func (p *Providers) Ready() bool {
	return !slices.ContainsFunc(p.all, func(provider *provider) bool { return provider.usableSnapshot() == nil })
}

// Client returns the HTTP client for requests to providers. It follows no redirects: they could
// take a code or a secret to another host.
func (p *Providers) Client() *http.Client { return p.client }

// Endpoints holds the endpoints of a provider's metadata that sign-in needs. An endpoint that the
// provider lacks is empty.
type Endpoints struct {
	Authorization       string `json:"authorization_endpoint"`
	Token               string `json:"token_endpoint"`
	DeviceAuthorization string `json:"device_authorization_endpoint"`
	// In responses to authorization requests (RFC 9207)
	NamesIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// Endpoints returns the endpoints of a configured provider. The error is a [*web.RetryError] if its
// metadata could not be fetched.
func (p *Providers) Endpoints(ctx context.Context, issuer string) (Endpoints, error) {
	one := p.byIssuer[issuer]
	if one == nil {
		return Endpoints{}, errIssuer
	}
	s, _, err := one.lookUpKey(ctx, "")
	if err != nil {
		return Endpoints{}, err
	}
	return s.Endpoints, nil
}
