package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// sessionCookie contains the secret of a session. Without TLS, which the console serves only to
// this machine, browsers send cookies to every port of the machine. So the cookie has a path that
// only its browser and the console know.
const sessionCookie = "pgfsm"

// baseOf returns the path of a session's pages.
func baseOf(r *http.Request, secret string) string {
	if !isLocal(r) {
		return ConsolePath
	}
	_, sum, _ := strings.Cut(string(canonical.Sum("console path", []byte(secret))), ":")
	return strings.Replace(sessionPath, "{session}", sum[:32], 1)
}

// isLocal reports whether a browser reaches the console without TLS. Only programs on this machine
// can: others need a proxy.
func isLocal(r *http.Request) bool { return r.TLS == nil && web.LocalHost(r.Host) }

// cookieName returns the name of a cookie. Behind TLS, the name's prefix forbids other sites to set
// it.
func cookieName(r *http.Request, name string) string {
	if isLocal(r) {
		return name
	}
	return "__Host-" + name
}

// newCookie returns a cookie for a path. Behind TLS it is for the whole site, as the prefix of its
// name requires.
func newCookie(r *http.Request, name, value, path string) *http.Cookie {
	c := &http.Cookie{
		Name:     cookieName(r, name),
		Value:    value,
		Path:     path,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
	if !isLocal(r) {
		c.Path, c.Secure = "/", true
	}
	return c
}

// expireCookie returns a cookie that removes the given one.
func expireCookie(c *http.Cookie) *http.Cookie {
	c.Value, c.MaxAge = "", -1
	return c
}

// refreshes is the header of the script, whose requests do not count as use of a session.
const refreshes = "Pgfsm-Refresh"

// findSession finds the session of a visit. The error is [ledger.ErrSession] if there is none.
func (h *Handler) findSession(v *visit) (err error) {
	sent := v.r.CookiesNamed(cookieName(v.r, sessionCookie))
	switch {
	case len(sent) > 1:
		return newProblem(HeaderRepeated, "the browser sent two session cookies, and at most one is the console's; "+
			"another service on this machine may have set the other one: delete the cookies of this site, and sign in again")
	case len(sent) == 0 || baseOf(v.r, sent[0].Value) != v.base:
		return ledger.ErrSession
	}
	v.secret = sent[0].Value
	v.caller, err = h.checkSession(v.r.Context(), v.secret, v.r.Header.Get(refreshes) == "" && v.page != "events")
	return err
}

// checkSession calls [ledger.Ledger.Session] and adds the roles of a person of an identity
// provider. The roles follow the configuration, which may have changed since the person signed in.
func (h *Handler) checkSession(ctx context.Context, secret string, used bool) (who ledger.Caller, err error) {
	who, err = h.Ledger.Session(ctx, secret, used)
	if err != nil || who.TokenID != "" {
		return who, err
	}
	// A session without a token belongs to a person of an identity provider.
	if i := h.providerOf(who.Name); i >= 0 {
		who.Roles = h.Providers[i].Roles(who.Identity, who.Name)
	}
	if !slices.ContainsFunc(h.entrance(), who.May) {
		return who, ledger.ErrSession
	}
	return who, nil
}

// A signInView is the page to sign in.
type signInView struct {
	Next      string // page to open afterwards, below the base
	Error     string
	Providers []providerLink
}

// signInTo returns the page to sign in. It leads to a page afterwards.
func (h *Handler) signInTo(v *visit, status int, next, why string) answer {
	shows := view{
		Status: status,
		Title:  "Sign in",
		Body:   signInView{Next: next, Error: why, Providers: h.providerLinks(next)},
	}
	if !v.route.open { // the page stands in place of another
		shows.Next = &next
	}
	return h.page(v, "sign-in", shows)
}

func (h *Handler) signInPage(v *visit) (answer, error) {
	return h.signInTo(v, http.StatusOK, "", ""), nil
}

// askToSignIn returns the page to sign in, in place of a page that needs a session.
func (h *Handler) askToSignIn(v *visit) answer {
	next := v.page
	if v.r.Method != http.MethodGet || !h.isNext(next) {
		next = ""
	}
	return h.signInTo(v, http.StatusUnauthorized, next, "")
}

// signIn begins a session with a token.
func (h *Handler) signIn(v *visit) (answer, error) {
	fields, err := v.readForm(MaxBody, "token", "next")
	if err != nil {
		return answer{}, err
	}
	next := fields["next"]
	if !h.isNext(next) {
		return answer{}, errForm
	}
	secret, err := h.Ledger.SignIn(v.r.Context(), strings.TrimSpace(fields["token"]), h.entrance()...)
	return h.beginSession(v, secret, next, err)
}

// beginSession sets the session's cookie and redirects to a page. It does not take over an earlier
// session of the browser. If the ledger refused the session, it shows the page to sign in again.
func (h *Handler) beginSession(v *visit, secret, next string, err error) (answer, error) {
	var refused *ledger.Refusal
	if errors.As(err, &refused) {
		h.logRefusal(refused)
		return h.signInTo(v, statusOf(refused), next, refused.Error()), nil
	}
	if err != nil {
		return answer{}, err
	}
	http.SetCookie(v.w, newCookie(v.r, sessionCookie, secret, baseOf(v.r, secret)))
	return redirectTo(baseOf(v.r, secret) + next), nil
}

// A linkView is the page of a sign-in link.
type linkView struct{ Name, Role string }

// explainUsedLink returns the refusal of a link that begins no session any more. It returns other errors
// unchanged.
func explainUsedLink(err error) error {
	if errors.Is(err, ledger.ErrSession) {
		return newProblem(Code(ledger.RefusedExpired),
			"this link was used, or its minute is over; run pgfsm console again for a new one")
	}
	return err
}

func (h *Handler) linkPage(v *visit) (answer, error) {
	who, err := h.Ledger.Link(v.r.Context(), v.id)
	if err != nil {
		return answer{}, explainUsedLink(err)
	}
	return h.page(v, "link", view{Title: "Sign in", Body: linkView{who.Name, who.Role()}}), nil
}

func (h *Handler) signInByLink(v *visit) (answer, error) {
	if _, err := v.readForm(MaxBody); err != nil {
		return answer{}, err
	}
	secret, err := h.Ledger.SignInByLink(v.r.Context(), v.id)
	if err := explainUsedLink(err); err != nil {
		return answer{}, err
	}
	return h.beginSession(v, secret, "", nil)
}

func (h *Handler) signOut(v *visit) (answer, error) {
	if _, err := v.readForm(MaxBody); err != nil {
		return answer{}, err
	}
	if err := h.Ledger.SignOut(v.r.Context(), v.secret); err != nil {
		return answer{}, err
	}
	http.SetCookie(v.w, expireCookie(newCookie(v.r, sessionCookie, "", v.base)))
	return redirectTo(ConsolePath + "sign-in"), nil
}
