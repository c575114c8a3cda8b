// Package login signs people in at an identity provider: at a terminal, to get an access token, and
// at a web site.
//
//	c := &login.Client{ID: "pgfsm-cli", Issuer: issuer, Providers: providers, Resource: "https://approvals.example.com"}
//	token, err := c.Browser(ctx, show) // OAuth 2.0 for Native Apps (RFC 8252), with PKCE (RFC 7636)
//	token, err = c.Device(ctx, show)   // Device Authorization Grant (RFC 8628)
//
//	location, err := c.SignInURL(ctx, s)     // OpenID Connect Core 1.0 section 3.1
//	idToken, err := c.SignIn(ctx, s, query)
package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"golang.org/x/oauth2"

	"pgfsm/internal/identity"
	"pgfsm/internal/visible"
)

// Timeout bounds the time that a person has to sign in.
const Timeout = 10 * time.Minute

// maxShown bounds the part of a provider's answer that an error repeats, in bytes.
const maxShown = 200

// A Client is a client of an identity provider.
type Client struct {
	ID        string
	Secret    string // empty: a public client
	Issuer    string // one of Providers
	Providers *identity.Providers
	Resource  string // the resource of the access token (RFC 8707); empty: the request names none
	Scopes    []string
}

// ErrNoDeviceFlow means that the provider does not offer the device flow.
var ErrNoDeviceFlow = errors.New("the identity provider does not offer the device flow")

func (c *Client) oauthConfig(endpoints identity.Endpoints, redirect string) *oauth2.Config {
	endpoint := oauth2.Endpoint{
		AuthURL:       endpoints.Authorization,
		TokenURL:      endpoints.Token,
		DeviceAuthURL: endpoints.DeviceAuthorization,
		AuthStyle:     oauth2.AuthStyleInHeader,
	}
	if c.Secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID:     c.ID,
		ClientSecret: c.Secret,
		Endpoint:     endpoint,
		RedirectURL:  redirect,
		Scopes:       c.Scopes,
	}
}

// withResource adds the resource to the options of a request.
func (c *Client) withResource(o ...oauth2.AuthCodeOption) []oauth2.AuthCodeOption {
	if c.Resource != "" {
		o = append(o, oauth2.SetAuthURLParam("resource", c.Resource))
	}
	return o
}

func (c *Client) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.Providers.Client())
}

// Browser lets the person sign in in a browser on this machine. show tells the person the URL.
func (c *Client) Browser(ctx context.Context, show func(url string) error) (token string, err error) {
	ctx, cancel := context.WithTimeout(c.withClient(ctx), Timeout)
	defer cancel()
	endpoints, err := c.Providers.Endpoints(ctx, c.Issuer)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}

	// The provider sends the browser back to a free port of this machine.
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	conf := c.oauthConfig(endpoints, "http://"+listener.Addr().String()+"/callback")
	answers := make(chan answer, 1)
	server := &http.Server{Handler: c.handleCallback(endpoints, state, answers), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		// The browser reads the last page.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if shutdownErr := server.Shutdown(closing); shutdownErr != nil {
			_ = server.Close()
		}
	}()

	if err := show(conf.AuthCodeURL(state, c.withResource(oauth2.S256ChallengeOption(verifier))...)); err != nil {
		return "", err
	}

	select {
	case a := <-answers:
		if a.err != nil {
			return "", a.err
		}
		return accessToken(conf.Exchange(ctx, a.code, c.withResource(oauth2.VerifierOption(verifier))...))
	case err := <-served:
		return "", err
	case <-ctx.Done():
		return "", endedError(ctx)
	}
}

// answer is the provider's authorization response.
type answer struct {
	code string
	err  error
}

// handleCallback takes the first authorization response with the right state. Other programs on
// this machine can send requests, too.
func (c *Client) handleCallback(endpoints identity.Endpoints, state string, answers chan<- answer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This response belongs to no sign-in of pgfsm login.", http.StatusBadRequest)
			return
		}
		var a answer
		a.code, a.err = ReadCode(c.Issuer, endpoints.NamesIssuer, q)
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if a.err != nil {
			http.Error(w, "pgfsm login: "+a.err.Error(), http.StatusBadRequest)
		} else {
			fmt.Fprintln(w, "You can close this page. pgfsm login has the answer of the identity provider.")
		}
		select {
		case answers <- a:
		default: // only the first one counts
		}
	})
	return mux
}

// ReadCode returns the code of an authorization response whose state was checked. named says that the issuer names
// itself in responses (RFC 9207).
func ReadCode(issuer string, named bool, q url.Values) (string, error) {
	switch iss := q["iss"]; {
	case len(iss) > 1, len(iss) == 1 && iss[0] != issuer, len(iss) == 0 && named:
		return "", errors.New("the authorization response is not from the identity provider (RFC 9207): its iss differs or is missing")
	case q.Get("error") != "":
		return "", refusedError(q.Get("error"), q.Get("error_description"))
	case q.Get("code") == "":
		return "", errors.New("the authorization response has neither a code nor an error")
	}
	return q.Get("code"), nil
}

// Device lets the person sign in on another device. show tells the person the URL and the code to
// type there.
func (c *Client) Device(ctx context.Context, show func(url, code string) error) (token string, err error) {
	ctx, cancel := context.WithTimeout(c.withClient(ctx), Timeout)
	defer cancel()
	endpoints, err := c.Providers.Endpoints(ctx, c.Issuer)

	switch {
	case err != nil:
		return "", err
	case endpoints.DeviceAuthorization == "":
		return "", ErrNoDeviceFlow
	}

	conf := c.oauthConfig(endpoints, "")
	d, err := conf.DeviceAuth(ctx, c.withResource()...)

	switch {
	case err != nil:
		return accessToken(nil, err)
	// It becomes a time.Duration, which could overflow.
	case d.Interval < 0 || d.Interval > int64(Timeout/time.Second):
		return "", fmt.Errorf("the identity provider wants a request every %d seconds", d.Interval)
	}

	if err := show(cmp.Or(d.VerificationURIComplete, d.VerificationURI), d.UserCode); err != nil {
		return "", err
	}

	token, err = accessToken(conf.DeviceAccessToken(ctx, d, c.withResource()...))
	if err != nil && ctx.Err() != nil {
		err = endedError(ctx)
	}

	return token, err
}

func accessToken(t *oauth2.Token, err error) (string, error) {
	if err != nil {
		return "", requestError(err)
	}
	return t.AccessToken, nil
}

// errorForm has the error codes of RFC 6749 section 5.2 and of its extensions.
var errorForm = regexp.MustCompile(`^[a-z_]{1,64}$`)

// requestError is an error of a request to the provider. It repeats nothing of the answer but the
// error's code: the provider got the client's secret and the code, and may repeat them in a
// description.
func requestError(err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer) && errorForm.MatchString(answer.ErrorCode):
		return refusedError(answer.ErrorCode, "")
	case errors.As(err, &answer):
		return fmt.Errorf("the identity provider answered %s", answer.Response.Status)
	}
	return fmt.Errorf("the identity provider cannot be reached: %w", err)
}

// ErrDenied is the error if the person did not allow what the client asks for (RFC 6749, section 4.1.2.1).
var ErrDenied = errors.New("the identity provider refused")

// refusedError is an error that the provider names, in its answer or through the person's browser.
func refusedError(code, description string) error {
	text := visible.Clip(code, maxShown)
	if description != "" {
		text += ": " + visible.Clip(description, maxShown)
	}
	if code == "access_denied" {
		return fmt.Errorf("%w: %s", ErrDenied, text)
	}
	return fmt.Errorf("the identity provider refused: %s", text)
}

func endedError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("nobody signed in within %s", Timeout)
	}
	return ctx.Err()
}
