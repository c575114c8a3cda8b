package origin

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/currency"
)

// Names of the forms, beside "" for a value as it stands.
const (
	FormAddress = "address" // Name <a@b>
	FormCompact = "compact" // IBAN and phone without spaces
	FormAmount  = "amount"  // with currency or thousands
	FormURL     = "url"     // host in another case, / for no path, or below a trusted prefix
	FormDate    = "date"    // ISO or in English words
	FormHandle  = "handle"  // #x, @x and x
)

var (
	ibanPattern   = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}(?:[A-Z0-9]+|(?: [A-Z0-9]{4})+(?: [A-Z0-9]{1,3})?)$`)
	phonePattern  = regexp.MustCompile(`^[+0][0-9]+(?: [0-9]+)*$`)
	handlePattern = regexp.MustCompile(`^[#@]?[\pL\pN_-]+$`)
	amountPattern = regexp.MustCompile(`(?:([A-Z]{3}|\p{Sc}) ?)?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(\.[0-9]+)?` +
		`(?: ?([A-Z]{3}|\p{Sc}|dollars?|euros?|pounds?))?`)
	datePattern = regexp.MustCompile(`(?i)([0-9]{1,2})(?:st|nd|rd|th)?\.?(?: of)? (` + months + `)\.?,? ([0-9]{4})|` +
		`(` + months + `)\.? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})|([0-9]{4})-([0-9]{2})-([0-9]{2})`)
	encodedSeparator = regexp.MustCompile(`(?i)%(?:2f|5c|2e|25|00)`)
)

const months = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|` +
	`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// addressOf returns the address in Name <a@b> or a@b with its domain in lower case, and whether a name is beside it. It
// returns "" for other text.
func addressOf(s string) (address string, named bool) {
	if open := strings.LastIndexByte(s, '<'); open >= 0 && strings.HasSuffix(s, ">") {
		// Programs read groups, comments and encoded words in a name, and may find another address there.
		name := s[:open]
		if strings.ContainsAny(name, "@,;<>:()[]\\") || strings.Contains(name, "=?") || strings.Count(name, `"`)%2 != 0 || !inForm(s) {
			return "", false
		}
		s, named = s[open+1:len(s)-1], true
	}
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || strings.ContainsAny(local, " ,;<>()[]:\"\\") || strings.IndexFunc(domain, isNoDomain) >= 0 ||
		domain == "" {
		return "", false
	}
	return local + "@" + strings.ToLower(domain), named
}

func isNoDomain(r rune) bool { return !isAlphanumeric(r) && r != '.' && r != '-' }

// compactOf returns an IBAN or a phone number without spaces, or "". The spaces of an IBAN stand behind each four
// characters, those of a phone number between digits.
func compactOf(s string) string {
	if len(s) < 7 || len(s) > 48 {
		return ""
	}
	compact := strings.ReplaceAll(s, " ", "")
	switch {
	case ibanPattern.MatchString(s) && 15 <= len(compact) && len(compact) <= 34:
		return compact
	case phonePattern.MatchString(s) && 7 <= len(compact) && len(compact) <= 16:
		return compact
	}
	return ""
}

// Limits in bytes of texts that can be an amount or a date.
const (
	maxAmount = 64
	maxDate   = 64
)

// An amount is a decimal number without signs of thousands and needless zeros, and its currency.
type amount struct {
	number, currency string
	marked           bool // written with currency or thousands
}

// A span is a part of a text.
type span struct{ start, end int }

// amountOf reads s as an amount. The number is empty if s is none.
func amountOf(s string) amount {
	if len(s) > maxAmount || !strings.ContainsAny(s, "0123456789") {
		return amount{}
	}
	if m := amountPattern.FindStringSubmatchIndex(s); m != nil {
		if a, at := readAmount(s, m, true); at == (span{0, len(s)}) {
			return a
		}
	}
	return amount{}
}

// readAmount returns the amount that m matches in s, and its place. Capitals that are no currency do not belong to it.
func readAmount(s string, m []int, withCurrency bool) (amount, span) {
	at := span{m[4], m[5]}
	number := strings.TrimLeft(strings.ReplaceAll(s[m[4]:m[5]], ",", ""), "0")
	if number == "" {
		number = "0"
	}
	if m[6] >= 0 {
		at.end = m[7]
		number = strings.TrimSuffix(strings.TrimRight(number+s[m[6]:m[7]], "0"), ".")
	}

	a := amount{number: number, marked: strings.Contains(s[m[4]:m[5]], ",")}
	before, behind := currencyAt(s, m[2], m[3]), currencyAt(s, m[8], m[9])
	if withCurrency && before != "" {
		a.currency, a.marked, at.start = before, true, m[2]
	}
	if withCurrency && behind != "" {
		if before != "" && before != behind {
			behind = before + " " + behind // two currencies equal none
		}
		a.currency, a.marked, at.end = behind, true, m[9]
	}
	return a, at
}

// currencyAt returns the currency that stands in s[start:end], or "".
func currencyAt(s string, start, end int) string {
	if start < 0 {
		return ""
	}
	name := s[start:end]
	switch strings.TrimSuffix(name, "s") {
	case "€", "euro":
		return "EUR"
	case "£", "pound":
		return "GBP"
	case "dollar":
		return "$"
	}
	if len(name) == 3 && name[0] <= 'Z' {
		if _, err := currency.ParseISO(name); err != nil {
			return ""
		}
	}
	return name
}

// covers reports whether an amount of the arguments is the amount b. It may leave out b's currency, but not add one.
func (a amount) covers(b amount) bool {
	return a.number != "" && a.number == b.number && (a.currency == "" || a.currency == b.currency)
}

// standsIn reports whether the digits of the amount stand in text, with or without signs of thousands.
func (a amount) standsIn(text []byte) bool {
	if a.number == "" || bytes.Contains(text, []byte(a.number)) {
		return a.number != ""
	}
	whole, fraction, _ := strings.Cut(a.number, ".")
	if len(whole) < 4 {
		return false
	}
	grouped := whole[:(len(whole)-1)%3+1]
	for i := len(grouped); i < len(whole); i += 3 {
		grouped += "," + whole[i:i+3]
	}
	return bytes.Contains(text, []byte(strings.TrimSuffix(grouped+"."+fraction, ".")))
}

// A link is a URL: origin is scheme, host and port in lower case, rest what follows.
type link struct{ origin, rest string }

// linkOf reads s as a URL. The origin is empty if s is none, or has a user part.
func linkOf(s string) link {
	scheme, behind, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || strings.IndexFunc(scheme, isNoScheme) >= 0 {
		return link{}
	}
	host := behind
	if end := strings.IndexAny(behind, `/?#\`); end >= 0 {
		host = behind[:end]
	}
	isNoHost := func(r rune) bool { return isNoDomain(r) && !strings.ContainsRune("[]:", r) }
	if host == "" || strings.ContainsFunc(host, isNoHost) {
		return link{}
	}
	rest := behind[len(host):]
	return link{strings.ToLower(scheme + "://" + host), rest}
}

func isNoScheme(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+.-", r)
}

// equals reports whether both are the same URL; no path is /.
func (l link) equals(other link) bool {
	return l.origin != "" && l.origin == other.origin && (l.rest == other.rest || l.rest+other.rest == "/")
}

// isBelow reports whether l is a longer path of base, which ends in /.
func (l link) isBelow(base link) bool {
	if l.origin == "" || l.origin != base.origin ||
		strings.ContainsAny(base.rest, "?#") || !strings.HasSuffix(base.rest, "/") {
		return false
	}

	tail, ok := strings.CutPrefix(l.rest, base.rest)
	if !ok || tail == "" || strings.ContainsAny(tail, `?#\;`) || encodedSeparator.MatchString(tail) {
		return false
	}
	if strings.ContainsFunc(tail, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	for i, segment := range strings.Split(tail, "/") {
		if segment == "." || segment == ".." || segment == "" && i < strings.Count(tail, "/") {
			return false
		}
	}
	return true
}

// dateOf returns the ISO date that s is, or "".
func dateOf(s string) string {
	if len(s) > maxDate || countDigits(s) < len("12026") {
		return ""
	}
	m := datePattern.FindStringSubmatch(s)
	if m == nil || m[0] != s {
		return ""
	}
	return readDate(m)
}

func countDigits(s string) (n int) {
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			n++
		}
	}
	return n
}

// readDate returns the date of a match of datePattern, or "" if there is no such day.
func readDate(m []string) string {
	year, day, month := m[3]+m[6]+m[7], m[1]+m[5]+m[9], 0
	if m[8] != "" {
		month, _ = strconv.Atoi(m[8])
	} else {
		at := strings.Index("..janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower((m[2] + m[4])[:3]))
		month = (at + 1) / 3 // 0: the name has letters beyond ASCII
	}
	d, _ := strconv.Atoi(day)
	if month < 1 || month > 12 || d < 1 || d > daysIn(month, year) {
		return ""
	}
	return fmt.Sprintf("%s-%02d-%02d", year, month, d)
}

func daysIn(month int, year string) int {
	y, _ := strconv.Atoi(year)
	if month == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
		return 29
	}
	return [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// handleOf splits #x, @x or x into sign and name. The name is empty if s is none.
func handleOf(s string) (sign, name string) {
	if len(s) > MaxPattern || !handlePattern.MatchString(s) {
		return "", ""
	}
	name = strings.TrimLeft(s, "#@")
	return s[:len(s)-len(name)], name
}

func isAlphanumeric(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }
