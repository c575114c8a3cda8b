package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/glob"
	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/redact"
)

const formatDuration = "go-duration"

// format is a check of texts that a schema cannot express.
type format struct {
	lines bool // the text may contain line ends and tabs
	check func(string) fault
}

// formats holds the checks of texts that schemas name.
var formats = map[string]format{
	"address":       {check: checkAddress},
	"argument":      {lines: true, check: checkArgument},
	"base-url":      {check: checkBaseURL},
	"decide-url":    {check: checkDecideURL},
	"expression":    {lines: true},
	"glob":          {check: checkGlob},
	"history-query": {check: checkQuery},
	"argument-path": {check: checkArgumentPath},
	"ledger":        {check: checkLedger},
	"lines":         {lines: true},
	"pointer":       {check: checkPointer},
	"re2":           {check: checkPattern},
	"redact":        {check: checkRedactPattern},
	"references":    {check: checkReferences},
	"secret-lines":  {lines: true, check: checkReferences},
	"secure-url":    {check: checkSecureURL},
	"server-url":    {check: checkURL},
	"visible":       {check: checkShown},
}

// checkShown refuses a text with deceptive characters.
func checkShown(s string) fault {
	if s != "" && (visible.Text(s) != s || visible.Blank(s) || s[0] == ' ' || s[len(s)-1] == ' ') {
		return fault{"holds characters that do not show, or begins or ends with a space", "remove them"}
	}
	return fault{}
}

func checkQuery(s string) fault {
	if _, err := condition.ParseQuery(s); err != nil {
		return fault{"cannot be asked: " + err.Error(), `write it as the condition does, as in history.count("actor", "1h")`}
	}
	return fault{}
}

// checkArgument judges the name of a place in arguments.
func checkArgument(s string) fault {
	if !jsontext.Pointer(pointerTo(s)).IsValid() {
		return fault{"is not a JSON pointer", "write /NAME/NAME, with ~1 for a / and ~0 for a ~ in a name"}
	}
	return fault{}
}

// checkArgumentPath judges a path as in found("to").
func checkArgumentPath(s string) fault {
	problem, remedy := origin.CheckPath(s)
	return fault{problem, remedy}
}

func checkGlob(s string) fault {
	if _, err := glob.Compile(s); err != nil {
		return fault{"is refused: " + err.Error(), "write a name, with * and ? for what may differ"}
	}
	return fault{}
}

// checkPointer judges a JSON pointer to a member.
func checkPointer(s string) fault {
	if s[0] != '/' || !jsontext.Pointer(s).IsValid() {
		return fault{"is not a JSON pointer", "write /NAME/NAME, with ~1 for a / and ~0 for a ~ in a name"}
	}
	return fault{}
}

// checkRedactPattern judges the pattern of a redact rule by itself.
func checkRedactPattern(s string) fault {
	if f := checkPattern(s); f != (fault{}) {
		return f
	}
	if _, _, err := redact.CompilePattern(s); err != nil {
		return fault{"is refused: " + err.Error(), "write a pattern for the texts to remove"}
	}
	return fault{}
}

// checkPattern checks an RE2 pattern. The minimum length already refuses the empty pattern, which
// would match everything.
func checkPattern(s string) fault {
	if _, err := regexp.Compile(s); err != nil {
		return fault{"is not RE2: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			remedyPattern}
	}
	return fault{}
}

func checkReferences(s string) fault {
	_, f := splitReferences(s)
	return f
}

// checkURL checks the URL of a server. No message repeats the URL, because it may contain a
// password.
func checkURL(s string) fault {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsAny(s, " \\"):
		return fault{"is not a URL with a host", "write one like https://HOST/PATH"}
	case u.User != nil:
		return fault{"holds a user name or password", "put the secret into headers or api_key, as a reference"}
	case u.Fragment != "" || strings.Contains(s, "#"):
		return fault{"has a fragment", "remove # and what follows it"}
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fault{"has a port that is not 1 to 65535",
				"correct the port, or leave out it and the colon before it"}
		}
	}
	return fault{}
}

// checkSecureURL checks a URL to which secrets are sent.
func checkSecureURL(s string) fault {
	if f := checkURL(s); f != (fault{}) {
		return f
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && !isLoopback(u) {
		return fault{"is http and leaves this machine", "write https"}
	}
	return fault{}
}

// checkBaseURL checks the base URL of a model.
func checkBaseURL(s string) fault {
	if strings.HasSuffix(strings.TrimRight(s, "/"), "/chat/completions") {
		return fault{"ends in /chat/completions, which pgfsm appends", "remove that"}
	}
	return checkURL(s)
}

// isLoopback reports whether a URL stays on this machine.
func isLoopback(u *url.URL) bool {
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// checkAddress checks the form of an address; [configFile.checkAddresses] checks who can reach it.
func checkAddress(s string) fault {
	if _, _, ok := splitAddress(s); !ok {
		return fault{"is not HOST:PORT with a port from 0 to 65535", "write one like 127.0.0.1:9000"}
	}
	return fault{}
}

// normalOrigin writes the scheme and the host of a checked URL in lower case, and omits the
// scheme's default port (RFC 3986, sections 6.2.2 and 6.2.3): clients compare such URLs with the
// URLs that they use.
func normalOrigin(s string) string {
	scheme, host, _ := strings.Cut(strings.ToLower(s), "://")
	switch scheme {
	case "":
		return ""
	case "https":
		host = strings.TrimSuffix(host, ":443")
	default:
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

// splitAddress reads HOST:PORT. For the name localhost, which may be any loopback address, it
// returns 127.0.0.1 and local is true. For other names it returns an address outside the loopback.
// ok is false if s is not a host and a port.
func splitAddress(s string) (address netip.AddrPort, local, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 1 || len(s) > i+2 && s[i+1] == '0' { // a port that begins with 0
		return address, false, false
	}
	if numeric, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(numeric.Addr().Unmap(), numeric.Port()), false, true
	}

	host, ip := s[:i], netip.IPv4Unspecified() // a name's address is unknown here, and may change
	if local = strings.EqualFold(host, "localhost"); local {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	port, err := strconv.ParseUint(s[i+1:], 10, 16)
	return netip.AddrPortFrom(ip, uint16(port)), local, err == nil && !strings.ContainsAny(host, "[]:/")
}

// checkDecideURL checks the URL where approvers decide. It may have a fragment, and [RunID] after
// its host.
func checkDecideURL(s string) fault {
	if strings.ContainsAny(strings.ReplaceAll(s, RunID, ""), "{}") || strings.Contains(s, "$"+RunID) {
		return fault{"has braces that are not those of {run_id}",
			"write {run_id} where the run's id belongs, or leave it out"}
	}
	base, _, _ := strings.Cut(s, "#")
	return checkSecureURL(base)
}

// durationRemedy is the remedy for a text that is not a duration.
const durationRemedy = "write numbers with ms, s, m or h, like 500ms, 10s, 1m30s"

// remedyPattern is the remedy for a text that is not an RE2 pattern.
const remedyPattern = "see https://github.com/google/re2/wiki/Syntax; in double quotes a backslash is written twice"

// remedyReference is the remedy for a reference in a wrong place.
const remedyReference = "put the secret into headers, env or api_key"

func subjectOf(p path) string {
	if len(p) == 0 {
		return "the file"
	}
	return p.String()
}

func rangeText(low, high int64) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// hasControl reports whether a text has invisible characters that change how it is displayed or
// sent.
func hasControl(s string, lines bool) bool {
	for _, r := range s {
		if lines && (r == '\n' || r == '\t') {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == '\uFEFF' {
			return true
		}
	}
	return false
}

// clipText cuts a text from a file to the length that fits into a message.
func clipText(s string) string { return visible.Cut(s, 64, "…") }

// quote quotes and clips a text from a file for printing.
func quote(s string) string { return strconv.Quote(clipText(s)) }

// oneOf lists choices in a sentence.
func oneOf(choices []string) string {
	if len(choices) == 1 {
		return choices[0]
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// Nearest suggests the most similar choice. The suggestion is empty if no choice is similar.
func Nearest(got string, choices []string) string {
	best, distance := "", 3
	low := strings.ToLower(got)
	for _, c := range choices {
		d := levenshtein.ComputeDistance(low, c)
		if strings.HasSuffix(low, c) || len(low) > 2 && strings.HasPrefix(c, low) {
			d = min(d, 1)
		}
		if d < distance && d < len(c) {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// nearestOr returns the suggestion of [Nearest], or otherwise if no choice is similar.
func nearestOr(got string, choices []string, otherwise string) string {
	return cmp.Or(Nearest(got, choices), otherwise)
}
