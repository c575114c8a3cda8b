package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgfsm/internal/identity/login"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A Provider is an identity provider at which people sign in.
type Provider interface {
	// IssuerURL identifies the provider: the names of its subjects begin with it.
	IssuerURL() string
	// Name returns the provider's name for people.
	Name() string
	// SignInURL returns the URL at which the browser signs in.
	SignInURL(context.Context, *login.SignIn) (string, error)
	// SignIn verifies the provider's response. It returns the person, and the time when the
	// provider asked for their credentials; zero if unknown.
	SignIn(context.Context, *login.SignIn, url.Values) (who ledger.Caller, at time.Time, err error)
	// Roles returns the ledger roles of a person.
	Roles(id *policy.Identity, name string) []string
}

// Each sign-in causes a request to the provider, and anybody who reaches the console can cause it.
// Providers block clients that send too many.
const (
	signInsEachSecond = 5
	signInsAtOnce     = 20
)

// attemptCookie contains an attempt to sign in at a provider. It is for one browser and a few
// minutes.
const attemptCookie = "pgfsm-attempt"

const (
	callbackPage = "callback" // the provider sends the browser back to this page
	providerPage = "provider" // this page sends the browser to a provider
	queryIssuer  = "issuer"   // the provider's issuer
	queryNext    = "next"     // page to open afterwards
	queryMaxAge  = "max_age"  // in seconds, as in OpenID Connect
)

// An attempt is stored in the browser until the provider sends it back: SECRET.NEXT.ISSUER.
type attempt struct {
	login.SignIn
	provider Provider
	next     string
}

// newAttempt returns an attempt, unless there is no such provider or no next page. It identifies
// the provider by its issuer: replicas may list the providers in another order.
func (h *Handler) newAttempt(r *http.Request, secret, issuer, next string) (*attempt, bool) {
	i := slices.IndexFunc(h.Providers, func(p Provider) bool { return p.IssuerURL() == issuer })
	if i < 0 || !h.isNext(next) {
		return nil, false
	}
	scheme := "https://"
	if isLocal(r) {
		scheme = "http://"
	}
	return &attempt{login.SignIn{Secret: secret, Redirect: scheme + r.Host + ConsolePath + callbackPage}, h.Providers[i],
		next}, true
}

var errNoSignIn = newProblem(PathUnknown, "there is no such way to sign in")

// redirectToProvider sends the browser to a provider. It answers a GET, because the content policy would
// block the redirect of a form.
func (h *Handler) redirectToProvider(v *visit) (answer, error) {
	seconds, err := strconv.ParseUint(cmp.Or(v.query[queryMaxAge], "0"), 10, 32)
	a, ok := h.newAttempt(v.r, rand.Text(), v.query[queryIssuer], v.query[queryNext])
	if err != nil || !ok {
		return answer{}, errNoSignIn
	}

	a.MaxAge = time.Duration(seconds) * time.Second
	signInURL, err := a.provider.SignInURL(v.r.Context(), &a.SignIn)
	if err != nil {
		h.logFailed("nobody can sign in at " + a.provider.IssuerURL() + ": " + err.Error())
		return answer{}, newProblem(Unavailable, "the identity provider cannot be reached now; the service's log says why")
	}

	stored := strings.Join([]string{a.Secret, a.next, url.QueryEscape(a.provider.IssuerURL())}, ".")
	cookie := newCookie(v.r, attemptCookie, stored, ConsolePath)
	cookie.MaxAge = int(login.Timeout / time.Second)
	http.SetCookie(v.w, cookie)
	return redirectTo(signInURL), nil
}

// attemptOf returns the attempt that the browser began.
func (h *Handler) attemptOf(r *http.Request) (*attempt, bool) {
	sent := r.CookiesNamed(cookieName(r, attemptCookie))
	if len(sent) != 1 {
		return nil, false
	}
	parts := strings.SplitN(sent[0].Value, ".", 3)
	if len(parts) != 3 {
		return nil, false
	}
	issuer, err := url.QueryUnescape(parts[2])
	if err != nil {
		return nil, false
	}
	return h.newAttempt(r, parts[0], issuer, parts[1])
}

// receiveSignIn begins the session of a person whom a provider sends back.
func (h *Handler) receiveSignIn(v *visit) (answer, error) {
	a, ok := h.attemptOf(v.r)
	if !ok {
		return h.signInTo(v, http.StatusBadRequest, "",
			"This browser did not begin to sign in, or took too long. Begin again."), nil
	}

	http.SetCookie(v.w, expireCookie(newCookie(v.r, attemptCookie, "", ConsolePath)))
	q, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return answer{}, errNoSignIn
	}
	if !h.asking.Allow() {
		return h.signInTo(v, http.StatusTooManyRequests, a.next,
			"Many people are signing in now. Try again in a few seconds."), nil
	}

	who, signedInAt, err := a.provider.SignIn(v.r.Context(), &a.SignIn, q)
	if err != nil {
		h.logFailed("nobody was signed in at the console by " + a.provider.IssuerURL() + ": " + err.Error())
		return h.signInTo(v, http.StatusUnauthorized, a.next,
			"The identity provider did not sign you in. The service's log says why."), nil
	}

	secret, err := h.Ledger.SignInAs(v.r.Context(), who, signedInAt, h.entrance()...)
	if errors.Is(err, ledger.ErrRole) {
		return h.signInTo(v, http.StatusForbidden, a.next, "You signed in as "+who.FullName()+", who has no role here. "+
			"The console needs one of the roles approver, auditor and admin. "+
			"Ask the operator of this gateway: the key identity.may of its configuration gives roles."), nil
	}

	return h.beginSession(v, secret, a.next, err)
}

// A providerLink leads to a provider.
type providerLink struct{ Name, URL string }

// providerLinks returns a link to each provider that leads to a page afterwards.
func (h *Handler) providerLinks(next string) (all []providerLink) {
	for _, p := range h.Providers {
		query := url.Values{queryIssuer: {p.IssuerURL()}, queryNext: {next}}
		all = append(all, providerLink{p.Name(), ConsolePath + providerPage + "?" + query.Encode()})
	}
	return all
}

// signInAgain returns the link that leads a person to their provider, and then to a page. The
// provider asks for credentials again if it last asked longer ago than a policy allows, in
// milliseconds.
func (h *Handler) signInAgain(name, next string, fresh int64) []providerLink {
	i := h.providerOf(name)
	if i < 0 {
		return nil
	}
	link := h.providerLinks(next)[i]
	link.URL += "&" + queryMaxAge + "=" + strconv.FormatInt(max(1, fresh/1000), 10)
	return []providerLink{link}
}

// providerOf returns the index of a person's provider, or a negative number.
func (h *Handler) providerOf(name string) int {
	return slices.IndexFunc(h.Providers,
		func(p Provider) bool { return strings.HasPrefix(name, policy.SubjectName(p.IssuerURL(), "")) })
}
