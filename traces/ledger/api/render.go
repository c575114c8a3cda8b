package api

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

//go:embed page static
var files embed.FS

// An answer is a successful response, or an error in its form.
type answer struct {
	status   int // 0: 200
	mime     string
	body     []byte
	location string // page to redirect to; empty: none
	sent     bool   // the route has written the response
}

// redirectTo returns the answer that leads a browser to a page.
func redirectTo(location string) answer { return answer{location: location} }

// write sends the answer. net/http discards the body of a HEAD.
func (a *answer) write(v *visit) {
	switch {
	case a.sent:
	case a.location != "":
		http.Redirect(v.w, v.r, a.location, http.StatusSeeOther)
	default:
		v.w.Header().Set("Content-Type", a.mime)
		v.w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		v.w.WriteHeader(cmp.Or(a.status, http.StatusOK))
		_, _ = v.w.Write(a.body) // a client that has left needs no answer
	}
}

// document returns the function of a route that answers with a value as JSON.
func document[T any](read func(*Handler, *visit) (T, error)) func(*Handler, *visit) (answer, error) {
	return func(h *Handler, v *visit) (answer, error) {
		out, err := read(h, v)
		if err != nil {
			return answer{}, err
		}
		return answer{mime: "application/json", body: encodeDocument(out)}, nil
	}
}

func encodeDocument(value any) []byte { return append(canonical.MustSorted(value), '\n') }

// A view holds the data of a page.
type view struct {
	Status int // 0: 200
	Title  string
	Tab    string        // the page's tab in the navigation; empty: none
	Base   string        // prefix of links
	Who    ledger.Caller // zero without a session
	Now    string        // the ledger's time
	Held   int           // number of held calls; more than pageSize: there are more
	Events string        // query of the event stream that refreshes the page; empty: none
	After  int64         // end of the log that the page shows
	Next   *string       // for the script: the page that the person requested without a session; nil: none
	CLI    string        // command that shows the same

	Connects bool // the person can connect accounts
	Body     any
}

// Audits reports whether the person may see entries and results.
func (v *view) Audits() bool { return v.Who.May(ledger.ActAudit) }

// Tabs lists the pages of the navigation that the person may open.
func (v *view) Tabs() (all []tab) {
	if v.Who.May(ledger.ActRead) {
		all = append(all, tabs...)
	}
	if v.Connects {
		all = append(all, tab{connectionsPage, "Connections", connectionsPage})
	}
	return all
}

// A tab is a page of the navigation.
type tab struct{ Name, Label, Path string }

var tabs = []tab{
	{"inbox", "Inbox", ""}, {"runs", "Runs", "runs"}, {"now", "Now", "now"}, {"log", "Log", "log"},
	{"policy", "Policy", "policy"}, {"servers", "Servers", "servers"},
}

// pages maps names to templates.
var pages = func() map[string]*template.Template {
	templates := make(map[string]*template.Template)
	layout := template.Must(template.New("layout.html").Funcs(templateFuncs).ParseFS(files, "page/layout.html"))
	names, err := fs.Glob(files, "page/*.html")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		page := template.Must(template.Must(layout.Clone()).ParseFS(files, name))
		templates[strings.TrimSuffix(path.Base(name), ".html")] = page
	}
	return templates
}()

// markInvisible writes a text as HTML. It marks the escapes of the characters that escape changes.
func markInvisible(s string, escape func(string) string) template.HTML {
	if escape(s) == s {
		return template.HTML(template.HTMLEscapeString(s))
	}
	var b strings.Builder
	for _, p := range splitInvisible(s, escape) {
		if text := template.HTMLEscapeString(p.Text); p.Odd {
			b.WriteString(`<mark class="odd">` + text + `</mark>`)
		} else {
			b.WriteString(text)
		}
	}
	return template.HTML(b.String())
}

// A piece of a text is displayed unchanged, or is the escape of a character that is not visible as
// itself.
type piece struct {
	Text string
	Odd  bool
}

// splitInvisible splits a text at the characters that escape changes.
func splitInvisible(s string, escape func(string) string) (all []piece) {
	start := 0
	for i, r := range s {
		size := len(string(r))
		if c := s[i:min(i+size, len(s))]; r == '\uFFFD' && !strings.HasPrefix(c, "\uFFFD") {
			size = 1 // a byte that is not UTF-8
		}
		c := s[i : i+size]
		e := escape(c)
		if e == c {
			continue
		}
		if start < i {
			all = append(all, piece{Text: s[start:i]})
		}
		// Adjacent escapes are one piece.
		if n := len(all); n > 0 && all[n-1].Odd && start == i {
			all[n-1].Text += e
		} else {
			all = append(all, piece{e, true})
		}
		start = i + size
	}

	if start < len(s) {
		all = append(all, piece{Text: s[start:]})
	}

	return all
}

// page answers with a page.
func (h *Handler) page(v *visit, name string, shows view) answer {
	shows.Base, shows.Who, shows.After, shows.Now = cmp.Or(v.base, ConsolePath), v.caller, v.after, v.now
	shows.Connects = v.caller.May(ledger.ActConnect) && h.connectable() != nil
	if v.caller.May(ledger.ActRead) {
		var err error
		if shows.Held, err = h.poller.countHeld(v.r.Context(), h.Ledger, v.after); err != nil {
			h.Log("the held calls cannot be counted: " + err.Error())
		}
	}
	var b bytes.Buffer
	if err := pages[name].ExecuteTemplate(&b, "layout.html", &shows); err != nil {
		h.Log("a page of the console cannot be shown: " + err.Error())
		return answer{status: http.StatusInternalServerError, mime: "text/plain"}
	}
	return answer{status: shows.Status, mime: "text/html; charset=utf-8", body: b.Bytes()}
}

// serveAsset serves a file of the console. The dark colours of the machine's picture are in the
// style sheet: in the page they would be an inline style, which the content policy forbids.
func (h *Handler) serveAsset(v *visit) (answer, error) {
	b, err := files.ReadFile("static/" + v.page)
	if v.page == "console.css" {
		b = append(b, fsm.SVGStyle()...)
	}
	return answer{mime: mime.TypeByExtension(path.Ext(v.page)), body: b}, err
}

// indentJSON writes JSON for people. It returns any other text unchanged.
func indentJSON(doc jsontext.Value) string {
	text := doc.Clone()
	_ = text.Indent(jsontext.WithIndent("  ")) // after an error, the text is unchanged
	return string(text)
}
