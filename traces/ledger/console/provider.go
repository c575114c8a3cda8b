package console

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgfsm/identity/login"
	"pgfsm/policy"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

// A Provider signs people in: an identity provider.
type Provider interface {
	// Name names the provider to people.
	Name() string
	// SignInURL is where the browser goes to sign in.
	SignInURL(context.Context, *login.SignIn) (string, error)
	// SignIn verifies the provider's response: who signed in, and when the provider asked for their credentials; zero if it does not say.
	SignIn(context.Context, *login.SignIn, url.Values) (who ledger.Caller, at time.Time, err error)
	// Roles are the roles of the ledger that a person has.
	Roles(id *policy.Identity, name string) []string
}

// Cookies of attempts to sign in at a provider. They are for one browser and a few minutes.
const (
	secureAttempt = "__Host-pgfsm-attempt"
	localAttempt  = "pgfsm-attempt"
)

const (
	callbackPage = "callback"   // to which a provider sends the browser back
	maxAttempt   = 4 << 10      // bytes of the cookie
	longestFresh = 24 * 60 * 60 // seconds
	queryNext    = "next"       // the page to go to
	queryMaxAge  = "max_age"    // in seconds, as in OpenID Connect
)

// An attempt is what the browser keeps until the provider sends it back: SECRET.PROVIDER.MAXAGE.NEXT.
type attempt struct {
	login.SignIn
	provider int
	next     string
}

func (h *Handler) newAttempt(r *http.Request, secret string, provider int, maxAge int64, next string) (*attempt, bool) {
	scheme := "https://"
	if local(r) {
		scheme = "http://"
	}
	return &attempt{
		SignIn:   login.SignIn{Secret: secret, Redirect: scheme + r.Host + Path + callbackPage, MaxAge: time.Duration(maxAge) * time.Second},
		provider: provider, next: next,
	}, provider < len(h.Providers) && provider >= 0 && maxAge >= 0 && maxAge <= longestFresh && isNext(next)
}

func attemptCookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{
		Name: localAttempt, Value: value, Path: Path, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(login.Timeout / time.Second),
	}
	if !local(r) {
		c.Name, c.Path, c.Secure = secureAttempt, "/", true // as the prefix __Host- demands
	}
	return c
}

// toProvider sends the browser to a provider. It answers a GET, because the content policy would stop a form that is redirected there.
func (h *Handler) toProvider(v *visit) error {
	q, err := url.ParseQuery(v.r.URL.RawQuery)
	provider, notNumber := strconv.Atoi(v.id)
	maxAge := int64(0)
	if text := q.Get(queryMaxAge); err == nil && text != "" {
		maxAge, err = strconv.ParseInt(text, 10, 64)
	}
	a, ok := h.newAttempt(v.r, rand.Text(), provider, maxAge, q.Get(queryNext))
	if err != nil || notNumber != nil || !ok {
		return errNoPage
	}
	at, err := h.Providers[a.provider].SignInURL(v.r.Context(), &a.SignIn)
	if err != nil {
		h.Log("nobody can sign in at " + h.Providers[a.provider].Name() + ": " + err.Error())
		return &refusal{http.StatusServiceUnavailable, "The identity provider cannot be reached now. The service's log says why."}
	}
	http.SetCookie(v.w, attemptCookie(v.r, strings.Join([]string{a.Secret, v.id, strconv.FormatInt(maxAge, 10), a.next}, ".")))
	http.Redirect(v.w, v.r, at, http.StatusSeeOther)
	return nil
}

// attemptOf is the attempt that the browser began.
func (h *Handler) attemptOf(r *http.Request) (*attempt, bool) {
	sent := r.CookiesNamed(attemptCookie(r, "").Name)
	if len(sent) != 1 || len(sent[0].Value) > maxAttempt {
		return nil, false
	}
	parts := strings.SplitN(sent[0].Value, ".", 4)
	if len(parts) != 4 {
		return nil, false
	}
	provider, err := strconv.Atoi(parts[1])
	maxAge, err2 := strconv.ParseInt(parts[2], 10, 64)
	a, ok := h.newAttempt(r, parts[0], provider, maxAge, parts[3])
	return a, ok && err == nil && err2 == nil
}

// fromProvider begins the session of a person whom a provider sends back.
func (h *Handler) fromProvider(v *visit) error {
	a, ok := h.attemptOf(v.r)
	if !ok {
		return h.notSignedIn(v, http.StatusBadRequest, "", "This browser did not begin to sign in, or took too long. Begin again.")
	}
	gone := attemptCookie(v.r, "")
	gone.MaxAge = -1
	http.SetCookie(v.w, gone)
	q, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return errNoPage
	}
	p := h.Providers[a.provider]
	who, at, err := p.SignIn(v.r.Context(), &a.SignIn, q)
	if err != nil {
		h.Log("nobody was signed in at the console by " + p.Name() + ": " + visible.Text(err.Error()))
		return h.notSignedIn(v, http.StatusUnauthorized, a.next, "The identity provider did not sign you in. The service's log says why.")
	}
	secret, err := h.Ledger.SignInAs(v.r.Context(), who, at)
	var no *ledger.Refusal
	if errors.As(err, &no) {
		h.Log("nobody was signed in at the console: " + visible.Text(no.Error()+" "+no.Detail))
		return h.notSignedIn(v, statusOf(no), a.next, no.Error())
	}
	if err != nil {
		return err
	}
	h.begin(v, secret, a.next)
	return nil
}

// notSignedIn shows the page to sign in again.
func (h *Handler) notSignedIn(v *visit, status int, next, why string) error {
	return h.render(v, status, "sign-in", view{Title: "Sign in", Body: h.signInView(next, why)})
}

// A providerLink leads to a provider.
type providerLink struct{ Name, URL string }

// providerLinks lead to each provider and then to a page.
func (h *Handler) providerLinks(next string) (all []providerLink) {
	for i, p := range h.Providers {
		all = append(all, providerLink{p.Name(), Path + "provider/" + strconv.Itoa(i) + "?" + url.Values{queryNext: {next}}.Encode()})
	}
	return all
}

// signInAgain leads a person to their provider, and then to a page. The provider asks for their credentials if it did so longer ago than a policy
// allows, in milliseconds.
func (h *Handler) signInAgain(name, next string, fresh int64) []providerLink {
	i := h.providerOf(name)
	if i < 0 {
		return nil
	}
	again := h.providerLinks(next)[i]
	again.URL += "&" + queryMaxAge + "=" + strconv.FormatInt(max(1, fresh/1000), 10)
	return []providerLink{again}
}

// providerOf is the index of a person's provider, or negative.
func (h *Handler) providerOf(name string) int {
	return slices.IndexFunc(h.Providers, func(p Provider) bool { return strings.HasPrefix(name, policy.SubjectName(p.Name(), "")) })
}
