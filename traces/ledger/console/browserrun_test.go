package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/console"
)

// A breaker breaks event streams.
type breaker struct {
	http.Handler
	mu     sync.Mutex
	stops  []context.CancelFunc // of the open streams
	refuse int                  // how many of the next streams get an error, after which a browser does not open them again
	opened int
}

func (b *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/events") {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		b.mu.Lock()
		b.opened++
		refused := b.refuse > 0
		if refused {
			b.refuse--
		}
		b.stops = append(b.stops, stop)
		b.mu.Unlock()
		if refused {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		b.Handler.ServeHTTP(w, r.WithContext(ctx))
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler) // a stream that has not begun would be an empty page
		}
		return
	}
	b.Handler.ServeHTTP(w, r)
}

// lose ends all streams, and refuses some of the next.
func (b *breaker) lose(refuse int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
	for _, stop := range b.stops {
		stop()
	}
	b.stops = nil
}

// TestRunUnderWayInABrowser: the page of a run follows it without a reload, also if its stream was lost and then refused.
func TestRunUnderWayInABrowser(t *testing.T) {
	if thoroughness == "" {
		t.Skip("make console runs this")
	}
	for _, refused := range []int{0, 1} {
		t.Run(fmt.Sprint("refused-", refused), func(t *testing.T) {
			broken := new(breaker)
			d, host := serves(t, func(h http.Handler) http.Handler { broken.Handler = h; return broken })
			link, err := d.NewLink(t.Context(), d.Caller(d.Token(alice, ledger.RoleAuditor)))
			check.NoError(t, err)
			d.result = []byte(statestest.GoodResult)
			run, finish := d.starts(statestest.Content())
			b := newTab(t, host, "dark", 360)
			b.do(chromedp.Navigate("http://"+host+console.LinkPath+link), chromedp.Click(chromedp.Search("main button")))
			b.shows("No call is held")
			b.do(chromedp.Evaluate[chromedp.Void]("location.href = document.body.dataset.base + 'runs/" + run + "'"))
			b.shows("Under way")
			b.until("the run is drawn up to its call", drawn("dispatch", true)+" && "+drawn("return", false))
			b.do(chromedp.Evaluate[chromedp.Void]("window.here = true"))

			before := broken.streams()
			broken.lose(refused)
			finish()
			b.until("the page has the end of the run", "here && document.querySelector('#standing ol').innerText.includes('answered')")
			b.until("the run is drawn up to its end", "here && "+drawn("return", true)+" && document.querySelector('mark.evidence')")
			b.until("the page says so to screen readers", "document.getElementById('said').innerText !== ''")
			if strings.Contains(b.text(), "Under way") {
				t.Error("the run has ended, and the page says that it is under way")
			}
			for broken.streams() <= before+refused && b.ctx.Err() == nil {
				b.do(chromedp.Evaluate[chromedp.Void]("1"))
			}
			b.quiet()
		})
	}
}

// drawn is an expression that says whether a trigger's wire in the picture has a step of the run.
func drawn(trigger string, is bool) string {
	not := ""
	if !is {
		not = "!"
	}
	return not + "[...document.querySelectorAll('#machine svg .taken')].some(e => e.textContent.includes('" + trigger + "'))"
}

func (b *breaker) streams() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}
