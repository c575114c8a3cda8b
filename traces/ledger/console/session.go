package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// sessionCookie contains the secret of a session. Without TLS, which the console serves only to
// this machine, browsers send cookies to every port of the machine. So the cookie has a path that
// only its browser and the console know.
const sessionCookie = "pgfsm"

// localPrefix begins the path of a session's pages without TLS; an id follows.
const localPrefix = "s/"

var localID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// baseOf returns the path of a session's pages.
func baseOf(r *http.Request, secret string) string {
	if !isLocal(r) {
		return Path
	}
	_, sum, _ := strings.Cut(string(canonical.Sum("console path", []byte(secret))), ":")
	return Path + localPrefix + sum[:32] + "/"
}

// isLocal reports whether a browser reaches the console without TLS. Only programs on this machine
// can: others need a proxy.
func isLocal(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return r.TLS == nil && loopback.Host(strings.Trim(host, "[]"))
}

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

// identifyCaller finds the session of a visit. The error is [ledger.ErrSession] if there is none.
func (h *Handler) identifyCaller(v *visit) (err error) {
	sent := v.r.CookiesNamed(cookieName(v.r, sessionCookie))
	switch {
	case len(sent) > 1:
		return errCookies
	case len(sent) == 0 || baseOf(v.r, sent[0].Value) != v.base:
		return ledger.ErrSession
	}
	v.secret = sent[0].Value
	v.who, err = h.checkSession(v.r.Context(), v.secret, v.r.Header.Get(refreshes) == "" && v.page != "events")
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
	if !who.May(ledger.ActRead) {
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

func (h *Handler) signInView(next, why string) signInView {
	return signInView{Next: next, Error: why, Providers: h.providerLinks(next)}
}

func (h *Handler) signInPage(v *visit) error {
	return h.renderPage(v, http.StatusOK, "sign-in", view{Title: "Sign in", Body: h.signInView("", "")})
}

// askToSignIn shows the sign-in page in place of a page that needs a session.
func (h *Handler) askToSignIn(v *visit) {
	next := v.page
	if v.r.Method != http.MethodGet || !isNext(next) {
		next = ""
	}
	h.writePage(v, http.StatusUnauthorized, "sign-in",
		view{Title: "Sign in", Next: &next, Body: h.signInView(next, "")})
}

// isNext reports whether a page may be opened after signing in.
func isNext(page string) bool {
	return slices.ContainsFunc(routes, func(candidate route) bool {
		_, fits := candidate.match(page)
		return fits && !candidate.open && !candidate.part && candidate.method == http.MethodGet
	})
}

// signIn begins a session with a token.
func (h *Handler) signIn(v *visit) error {
	fields, err := readForm(v, "token", "next")
	if err != nil {
		return err
	}
	next := fields["next"]
	if !isNext(next) {
		return errForm
	}
	secret, err := h.Ledger.SignIn(v.r.Context(), strings.TrimSpace(fields["token"]))
	return h.signedIn(v, secret, next, err)
}

// signedIn begins a session. If the ledger refused it, signedIn shows the sign-in page again.
func (h *Handler) signedIn(v *visit, secret, next string, err error) error {
	var refused *ledger.Refusal
	switch {
	case errors.As(err, &refused):
		if refused.Detail != "" {
			h.logSignIn("nobody was signed in at the console: " + refused.Detail)
		}
		return h.notSignedIn(v, api.StatusOf(refused), next, refused.Error())
	case err != nil:
		return err
	}
	h.beginSession(v, secret, next)
	return nil
}

// logSignIn logs a failed sign-in.
func (h *Handler) logSignIn(line string) { h.failed.Do(func() { h.Log(visible.Line(line)) }) }

// notSignedIn shows the sign-in page again, with the reason.
func (h *Handler) notSignedIn(v *visit, status int, next, why string) error {
	return h.renderPage(v, status, "sign-in", view{Title: "Sign in", Body: h.signInView(next, why)})
}

// beginSession sets the session's cookie and redirects to a page. It does not take over an earlier
// session of the browser.
func (h *Handler) beginSession(v *visit, secret, next string) {
	http.SetCookie(v.w, newCookie(v.r, sessionCookie, secret, baseOf(v.r, secret)))
	http.Redirect(v.w, v.r, baseOf(v.r, secret)+next, http.StatusSeeOther)
}

// A linkView is the page of a sign-in link.
type linkView struct{ Name, Role string }

var errLink = &refusal{http.StatusGone,
	"This link was used, or its minute is over. Run pgfsm console again for a new one."}

func (h *Handler) linkPage(v *visit) error {
	who, err := h.Ledger.Link(v.r.Context(), v.id)
	if errors.Is(err, ledger.ErrSession) {
		return errLink
	}
	if err != nil {
		return err
	}
	return h.renderPage(v, http.StatusOK, "link", view{Title: "Sign in", Body: linkView{who.Name, who.Role()}})
}

func (h *Handler) signInByLink(v *visit) error {
	if _, err := readForm(v); err != nil {
		return err
	}
	secret, err := h.Ledger.SignInByLink(v.r.Context(), v.id)
	if errors.Is(err, ledger.ErrSession) {
		return errLink
	}
	if err != nil {
		return err
	}
	h.beginSession(v, secret, "")
	return nil
}

func (h *Handler) signOut(v *visit) error {
	if _, err := readForm(v); err != nil {
		return err
	}
	if err := h.Ledger.SignOut(v.r.Context(), v.secret); err != nil {
		return err
	}
	http.SetCookie(v.w, expireCookie(newCookie(v.r, sessionCookie, "", v.base)))
	http.Redirect(v.w, v.r, Path+"sign-in", http.StatusSeeOther)
	return nil
}
