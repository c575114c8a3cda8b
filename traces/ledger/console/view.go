package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"pgfsm/fsm"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

//go:embed page static
var files embed.FS

// A view holds the data of a page.
type view struct {
	Title  string
	Base   string        // prefix of links
	Who    ledger.Caller // zero without a session
	Events string        // query of the event stream that refreshes the page; empty: none
	After  int64         // end of the log that the page shows
	Next   *string       // for the script: the page that the person requested without a session; nil: none
	CLI    string        // command that shows the same
	Body   any
}

// pages maps names to templates.
var pages = func() map[string]*template.Template {
	templates := make(map[string]*template.Template)
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"inLine":  func(s any) []piece { return splitInvisible(fmt.Sprint(s), visible.Text) },
		"inLines": func(s any) []piece { return splitInvisible(fmt.Sprint(s), visible.Lines) },
		"plain":   func(s any) string { return visible.Text(fmt.Sprint(s)) },
		"add1":    func(i int) int { return i + 1 },
	}).ParseFS(files, "page/layout.html"))
	names, err := fs.Glob(files, "page/*.html")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		templates[strings.TrimSuffix(path.Base(name),
			".html")] = template.Must(template.Must(layout.Clone()).ParseFS(files,
			name))
	}
	return templates
}()

// A piece of a text is displayed unchanged, or is the escape of a character that is not visible as
// itself.
type piece struct {
	Text string
	Odd  bool
}

// splitInvisible splits a text at the characters that escape changes.
func splitInvisible(s string, escape func(string) string) (all []piece) {
	if escape(s) == s {
		return []piece{{Text: s}}
	}

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

// renderPage answers with a page.
func (h *Handler) renderPage(v *visit, status int, page string, shows view) error {
	shows.Base, shows.Who = v.base, v.who
	var b bytes.Buffer
	if err := pages[page].ExecuteTemplate(&b, "layout.html", shows); err != nil {
		return err
	}
	header := v.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes()) // a browser that has left needs no page
	return nil
}

// writePage calls renderPage for a page that cannot fail.
func (h *Handler) writePage(v *visit, status int, page string, shows view) {
	if err := h.renderPage(v, status, page, shows); err != nil {
		h.Log("a page of the console cannot be shown: " + err.Error())
		v.w.WriteHeader(http.StatusInternalServerError)
	}
}

func (h *Handler) showError(v *visit, status int, text string) {
	h.writePage(v, status, "error", view{Title: http.StatusText(status), Body: text})
}

// serveAsset serves a file of the console. The dark colours of the machine's picture are in the
// style sheet: in the page they would be an inline style, which the content policy forbids.
func (h *Handler) serveAsset(v *visit) error {
	b, err := files.ReadFile("static/" + v.page)
	if err != nil {
		return err
	}
	if v.page == "console.css" {
		b = append(b, fsm.SVGStyle()...)
	}
	v.w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(v.page)))
	_, _ = v.w.Write(b) // a browser that has left needs no file
	return nil
}

// timeLeft describes the time left until a time of the ledger.
func timeLeft(now, until string) string {
	n, err := time.Parse(time.RFC3339, now)
	if err != nil {
		return ""
	}
	u, err := time.Parse(time.RFC3339, until)
	switch d := u.Sub(n); {
	case err != nil:
		return ""
	case d <= 0:
		return "expired"
	default:
		return present.Duration(int(d.Seconds())) + " left"
	}
}
