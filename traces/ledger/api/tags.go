package api

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/traces/ledger"
)

// templateFuncs are the functions of the pages' templates.
var templateFuncs = template.FuncMap{
	"line":      func(s any) template.HTML { return markInvisible(fmt.Sprint(s), visible.Text) },
	"lines":     func(s any) template.HTML { return markInvisible(fmt.Sprint(s), visible.Lines) },
	"plain":     func(s any) string { return visible.Text(fmt.Sprint(s)) },
	"add1":      func(i int) int { return i + 1 },
	"marked":    splitEscapes,
	"diffRows":  diffRows,
	"rowClass":  func(sign string) string { return rowClasses[sign] },
	"icon":      icon,
	"chip":      func(tone, icon string, text any) template.HTML { return chip{tone, icon, fmt.Sprint(text)}.HTML() },
	"status":    func(status any) template.HTML { return statusChip(status).HTML() },
	"tone":      statusChip,
	"risk":      func(modes []string, r present.Run) template.HTML { return riskChip(modes, r).HTML() },
	"ago":       timeAgo,
	"exact":     func(at string) template.HTML { return timeElement(at, exactTime(at), false) },
	"left":      func(now, until string) template.HTML { return timeElement(until, timeLeft(now, until), false) },
	"factKind":  factKind,
	"signClass": func(k present.SignKind) signClass { return signClasses[k] },
	"mini":      drawMini,
	"meter":     drawMeter,
	"percent":   percent,
	"call":      callName,
	"count":     countText,
	"name":      quoteName,
	"clip":      func(n int, s string) string { return visible.Cut(s, n, "…") },
}

// icons maps names to paths in a square of 16 by 16.
var icons = map[string]string{
	"check":  "M3 8.5l3.2 3.2L13 4.8",
	"cross":  "M4 4l8 8M12 4l-8 8",
	"clock":  "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2M8 5v3.2l2.2 1.6",
	"alert":  "M8 2L1.6 13.4h12.8zM8 6.3v3.2M8 11.6v.2",
	"no":     "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2M4 4l8 8",
	"ask":    "M5.7 6a2.3 2.3 0 1 1 3.3 2.1c-.7.4-1 .8-1 1.6M8 12.4v.2",
	"arrow":  "M3 8h10M9 4l4 4-4 4",
	"back":   "M13 8H3M7 4L3 8l4 4",
	"dot":    "M8 7.9v.2",
	"diff":   "M3 6h10M3 10h10M10.5 3l-5 10",
	"eye":    "M1.5 8S4 3.6 8 3.6 14.5 8 14.5 8 12 12.4 8 12.4 1.5 8 1.5 8M8 6.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6",
	"inbox":  "M2 9l2-6h8l2 6v4H2zM2 9h3.5l1 1.7h3L10.5 9H14",
	"list":   "M5 4h9M5 8h9M5 12h9M2 4h.2M2 8h.2M2 12h.2",
	"lock":   "M4 7.2h8v6H4zM5.6 7.2V5a2.4 2.4 0 0 1 4.8 0v2.2",
	"pin":    "M8 9.5V14M5 2.5h6M6 2.5v4L4 9.5h8L10 6.5v-4",
	"info":   "M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2M8 7.4v3.4M8 5v.2",
	"person": "M8 2.5a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2M3 13.5c.5-2.7 2.5-4 5-4s4.5 1.3 5 4",
}

// icon draws an icon. The name is one of the templates', never text of others.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="i" viewBox="0 0 16 16" aria-hidden="true"><path d="` + icons[name] + `"/></svg>`)
}

// A chip is a short text with a tone, and perhaps an icon.
type chip struct{ Tone, Icon, Text string }

// HTML writes the chip. Tone and icon are the templates' own.
func (c chip) HTML() template.HTML {
	var drawn template.HTML
	if c.Icon != "" {
		drawn = icon(c.Icon)
	}
	return `<span class="chip ` + template.HTML(c.Tone) + `">` + drawn + markInvisible(c.Text, visible.Text) + `</span>`
}

// statuses maps the statuses of runs, servers and verdicts to their tones and icons.
var statuses = map[string]chip{
	string(ledger.Pending): {"warn", "clock", ""}, string(ledger.Approved): {"info", "check", ""}, string(ledger.Allowed): {"info", "arrow", ""},
	string(ledger.Executed): {"good", "check", ""}, string(ledger.Denied): {"bad", "no", ""}, string(ledger.Failed): {"bad", "alert", ""},
	string(ledger.Expired): {"bad", "clock", ""}, string(ledger.Indeterminate): {"warn", "ask", ""},
	string(ledger.Delegated): {"info", "arrow", ""}, string(ledger.Reported): {"good", "check", ""}, string(ledger.Unreported): {"warn", "ask", ""},
	policy.ServerUp: {"good", "check", ""}, policy.ServerDown: {"bad", "cross", ""}, present.ServerUnknown: {"", "ask", ""},
	rules.Allow: {"good", "check", ""}, rules.Deny: {"bad", "no", ""},
}

func statusChip(status any) chip {
	text := fmt.Sprint(status)
	c := statuses[text]
	return chip{c.Tone, c.Icon, text}
}

// maxMode bounds the characters of an operator's mode name in a chip.
const maxMode = 24

// riskChip describes a risk. Only the highest mode is solid, and the lowest is quiet.
func riskChip(modes []string, r present.Run) chip {
	c := chip{"warn", "alert", visible.Cut(r.RiskMode, maxMode, "…") + fmt.Sprint(" ", r.RiskScore)}
	switch n := len(modes); {
	case n > 0 && modes[0] == r.RiskMode, r.RiskMode == policy.Unrated:
		c.Tone, c.Icon = "", ""
	case n > 1 && modes[n-1] == r.RiskMode:
		c.Tone = "solid"
	}
	return c
}

// riskModes returns the names of the risk modes of the active bundle, the lowest first.
func (h *Handler) riskModes(v *visit) ([]string, error) {
	if b := h.activeBundle(); b != nil {
		return riskModes(b.Content()), nil
	}
	return readValue(h, v, func(r ledger.Reader) ([]string, error) {
		content, _, _, err := present.ActiveBundle(r, nil)
		return riskModes(content), err
	})
}

// riskModes returns the names of a bundle's risk modes, the lowest first.
func riskModes(c *policy.Content) (names []string) {
	if c != nil && c.Risk != nil {
		for _, m := range c.Risk.Modes {
			names = append(names, m.Name)
		}
	}
	return names
}

// timeAgo describes a time of the ledger relative to now. It shows other texts unchanged, because a log that
// was changed may contain any.
func timeAgo(now, at string) template.HTML {
	t, err := time.Parse(policy.TimeForm, at)
	n, nowErr := time.Parse(policy.TimeForm, now)
	if err != nil || nowErr != nil {
		return timeElement(at, at, false)
	}
	text := present.Duration(int(n.Sub(t).Seconds())) + " ago"
	if t.After(n) {
		text = "in " + present.Duration(int(t.Sub(n).Seconds()))
	}
	return timeElement(at, text, true)
}

// timeElement writes a time. Of a relative one, the title has the exact time.
func timeElement(at, text string, relative bool) template.HTML {
	exact, title := template.HTML(template.HTMLEscapeString(visible.Text(at))), template.HTML("")
	if relative {
		title = ` title="` + exact + `"`
	}
	return `<time datetime="` + exact + `"` + title + `>` + markInvisible(text, visible.Text) + `</time>`
}

func exactTime(at string) string {
	t, err := time.Parse(policy.TimeForm, at)
	if err != nil {
		return at
	}
	return t.Format("2 Jan 2006, 15:04:05 UTC")
}

// timeLeft describes the time left until a time of the ledger.
func timeLeft(now, until string) string {
	if d := timeBetween(now, until); d > 0 {
		return present.Duration(int(d.Seconds())) + " left"
	}
	return "expired"
}

// factKind says how the value of a fact is shown: digest, time or text.
func factKind(value string) string {
	if _, err := canonical.ParseDigest(value); err == nil || isRunID(value) {
		return "digest"
	}
	if _, err := time.Parse(policy.TimeForm, value); err == nil {
		return "time"
	}
	return "text"
}

// A signClass is how a sign is shown.
type signClass struct{ Icon, Class string }

var signClasses = map[present.SignKind]signClass{
	present.SignDanger: {"alert", "bad-sign"}, present.SignRisk: {"alert", ""}, present.SignUnknown: {"ask", "bad-sign"},
	present.SignReplaced: {"diff", "bad-sign"}, present.SignHidden: {"eye", ""}, present.SignDiffers: {"diff", ""},
	present.SignDenied: {"no", ""}, present.SignFirst: {"info", ""}, present.SignPin: {"pin", ""}, present.SignOrigin: {"ask", "bad-sign"}, present.SignUsual: {"check", ""},
}

// drawMini draws a track in a row of a table. The states have the same places in each row.
func drawMini(r present.Run) template.HTML {
	t := present.NewTrack(&r)
	x, paths := 0, make(map[present.TrackClass]string)
	for i, phase := range t {
		if i == 1 && len(t) == 3 { // without an approval
			x += 2*7 + 3
		}
		for _, cell := range phase.Cells {
			paths[cell.Class] += "M" + strconv.Itoa(x) + ".5 1h5.5v8h-5.5z"
			x += 7
		}
		x += 3
	}
	svg := `<svg class="mini" role="img" aria-label="` + t.Place() + `" viewBox="0 0 107 10" preserveAspectRatio="none">`
	for _, class := range present.TrackClasses() {
		if paths[class] != "" {
			svg += `<path class="` + string(class) + `" d="` + paths[class] + `"/>`
		}
	}
	return template.HTML(svg + `</svg>`)
}

// drawMeter draws a share.
func drawMeter(class string, part, whole int) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="meter" aria-hidden="true" viewBox="0 0 100 8" preserveAspectRatio="none">`+
		`<rect class="rest" width="100" height="8"/><rect class="part %s" width="%d" height="8"/></svg>`, class, percent(part, whole)))
}

// percent returns a share in whole percent. A share that is not nothing is at least 1.
func percent(part, whole int) int {
	if part == 0 || whole == 0 {
		return 0
	}
	return max(1, part*100/whole)
}

// callName names a call. A run that was refused early may have none.
func callName(tool, server, code string) template.HTML {
	switch {
	case tool != "":
		return markInvisible(tool, visible.Text) + ` <span class="soft">on</span> ` + markInvisible(server, visible.Text)
	case code != "":
		return "a call that was not valid"
	}
	return "no call yet"
}

// nameQuotes escapes what ends a quoted name.
var nameQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quoteName returns the name of an argument for people. If it has spaces that do not show, or quotation
// marks, it is quoted, so that no two names look the same.
func quoteName(name string) string {
	if strings.Contains(name, "  ") || strings.Trim(name, " ") != name || strings.Contains(name, `"`) {
		return `"` + nameQuotes.Replace(name) + `"`
	}
	return name
}

// countText writes a number with its noun.
func countText(n any, one, many string) string {
	if number := fmt.Sprint(n); number != "1" {
		return number + " " + many
	}
	return "1 " + one
}

// rowClasses maps the signs of the lines of a difference to their classes.
var rowClasses = map[string]string{docdiff.Minus: "minus", docdiff.Plus: "plus", docdiff.Alert: "alert"}
