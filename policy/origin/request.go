package origin

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MinCharacters is how many characters a value needs that stands in a prompt without a word before it.
const MinCharacters = 4

// Signs that join a value with what is beside it.
const (
	joining       = "_@-+/−⁄∕"      // whatever follows
	joiningBefore = ".:&%~\\。·‧"    // if the value begins with such a character
	joiningBehind = ".:?#&=%~\\。·‧" // if such a character follows
	noHyphens     = "—―⸺⸻"          // dashes between sentences
	apostrophes   = "'’"            // before the value, if such a character is before them
	urlEnds       = " <>\""         // before a URL
	inAddress     = "!#$?^"         // before an address: its local part can have them
	inURL         = ",;!$*()'"      // behind a URL, if such a character follows
	beforeValue   = " :=\"'(#"      // between a word and a short value
	besideNumber  = "*•●×÷^"        // beside a number that is masked, or computed with
	cut           = ".."            // behind what is cut off
	inNumber      = ",'’٬٫"         // between digits
	numberSigns   = "+.,' #$€£¥"    // of values that are numbers
)

func isJoined(r rune) bool {
	return isAlphanumeric(r) || strings.ContainsRune(joining, r) ||
		unicode.In(r, unicode.Pd, unicode.Pc) && !strings.ContainsRune(noHyphens, r)
}

// isInURL reports whether a URL, or an address with parameters, continues at start.
func (f *finder) isInURL(text string, start int) bool {
	before := text[strings.LastIndexAny(text[:start], urlEnds)+1 : start]
	f.spend(len(before))
	return strings.Contains(before, "://") || strings.Contains(before, "www.") || strings.ContainsRune(before, '?') ||
		strings.Contains(before, "mailto:")
}

// standsAt reports whether text[at.start:at.end] stands between boundaries and may be the value.
func (v *value) standsAt(text string, at span) bool {
	if !v.finder.spend(300) {
		return false
	}
	found := text[at.start:at.end]
	first, _ := utf8.DecodeRuneInString(found)
	last, _ := utf8.DecodeLastRuneInString(found)
	if strings.HasPrefix(text[at.end:], cut) {
		return false
	}

	if before, size := utf8.DecodeLastRuneInString(text[:at.start]); size > 0 {
		beyond := lastRune(text[:at.start-size])
		if isJoined(before) || isJoined(first) && strings.ContainsRune(joiningBefore, before) ||
			strings.ContainsRune(apostrophes, before) && isJoined(beyond) ||
			v.address != "" && strings.ContainsRune(inAddress, before) || v.finder.isInURL(text, at.start) {
			return false
		}
		if unicode.IsDigit(first) && continuesNumber(found, before, beyond) {
			return false
		}
	}

	if behind, size := utf8.DecodeRuneInString(text[at.end:]); size > 0 {
		next, _ := utf8.DecodeRuneInString(text[at.end+size:])
		if isJoined(behind) || isJoined(next) && (strings.ContainsRune(joiningBehind, behind) ||
			v.link.origin != "" && strings.ContainsRune(inURL, behind)) {
			return false
		}
		if unicode.IsDigit(last) && continuesNumber(found, behind, next) {
			return false
		}
	}

	return !(v.compact != "" && strings.Contains(found, " ") && startsGroup(text[at.end:]))
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// continuesNumber reports whether what is beside a number belongs to it: a sign and a digit for thousands or groups of
// digits, or a sign that masks digits or computes with the number.
func continuesNumber(number string, sign, beyond rune) bool {
	if strings.ContainsRune(besideNumber, sign) && strings.IndexFunc(number, isNoNumber) < 0 {
		return true
	}
	if !unicode.IsDigit(beyond) {
		return false
	}
	return strings.ContainsRune(inNumber, sign) || sign == ' ' && strings.IndexFunc(number, isNoNumber) < 0
}

func isNoNumber(r rune) bool {
	return !unicode.IsDigit(r) && (r < 'A' || r > 'Z') && !strings.ContainsRune(numberSigns, r)
}

// startsGroup reports whether one more group of an IBAN follows.
func startsGroup(behind string) bool {
	group, ok := strings.CutPrefix(behind, " ")
	if !ok {
		return false
	}
	n := len(group) - len(strings.TrimLeft(group, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
	next, _ := utf8.DecodeRuneInString(group[n:])
	return 1 <= n && n <= 4 && !isJoined(next)
}

// introduced reports whether a word of the argument's name, "id", "number" or # is before the place.
func (v *value) introduced(text string, start int) bool {
	before := text[:start]
	if strings.HasSuffix(strings.TrimSuffix(before, " "), "#") {
		return true
	}
	trimmed := strings.TrimRight(before, beforeValue)
	if trimmed == before {
		return false
	}
	begin := strings.LastIndexFunc(trimmed, func(r rune) bool { return !isAlphanumeric(r) })
	_, size := utf8.DecodeRuneInString(trimmed[max(begin, 0):])
	word := strings.ToLower(trimmed)
	if begin >= 0 {
		word = strings.ToLower(trimmed[begin+size:])
	}
	return word == "id" || word == "number" || slices.Contains(v.words, word)
}

// longEnough reports whether the value needs no word before it, or has one; # is also one if the value begins with it.
func (v *value) longEnough(text string, at span) bool {
	return !v.bool && utf8.RuneCountInString(text[at.start:at.end]) >= MinCharacters ||
		text[at.start] == '#' || v.introduced(text, at.start)
}

// findText finds needle in text where accept agrees.
func findText(text, needle string, accept func(span) bool) (span, bool) {
	for i := 0; needle != ""; {
		k := strings.Index(text[i:], needle)
		if k < 0 {
			break
		}
		if at := (span{i + k, i + k + len(needle)}); accept(at) {
			return at, true
		}
		_, size := utf8.DecodeRuneInString(text[i+k:])
		i += k + size
	}
	return span{}, false
}

// findIn finds the value in a passage, as it stands or, if forms, in one of the forms.
func (v *value) findIn(p *passage, forms bool) (at span, form string, ok bool) {
	text := p.text
	stands := func(at span) bool { return v.standsAt(text, at) && v.longEnough(text, at) }
	if !forms {
		if at, ok = findText(text, v.text, stands); ok {
			return at, "", true
		}
		at, ok = v.findCaseless(text, stands)
		return at, "", ok
	}

	if v.address != "" && v.address != v.text {
		if at, ok = v.findAddress(text, stands); ok {
			return at, FormAddress, true
		}
	}
	if at, ok = v.findCompact(text, stands); ok {
		return at, FormCompact, true
	}
	if at, ok = v.findAmount(p); ok {
		return at, FormAmount, true
	}
	if at, ok = v.findURL(text, stands, true); ok {
		return at, FormURL, true
	}
	if at, ok = v.findDate(p); ok {
		return at, FormDate, true
	}
	at, ok = v.findHandle(text, stands)
	return at, FormHandle, ok
}

// findCaseless finds an address, or a URL, whose domain is in another case.
func (v *value) findCaseless(text string, stands func(span) bool) (span, bool) {
	if v.address == v.text {
		if at, ok := v.findAddress(text, stands); ok {
			return at, true
		}
	}
	return v.findURL(text, stands, false)
}

func (v *value) findAddress(text string, stands func(span) bool) (span, bool) {
	local, domain, _ := strings.Cut(v.address, "@")
	if local == "" {
		return span{}, false
	}
	at, ok := findText(text, local+"@", func(at span) bool {
		end := at.end + len(domain)
		return end <= len(text) && strings.EqualFold(text[at.end:end], domain) && stands(span{at.start, end})
	})
	return span{at.start, at.end + len(domain)}, ok
}

// findURL finds the URL; if slash, with or without the / of an empty path.
func (v *value) findURL(text string, stands func(span) bool, slash bool) (span, bool) {
	rest := v.link.rest
	switch {
	case v.link.origin == "":
		return span{}, false
	case slash && rest == "/":
		rest = ""
	case slash && rest == "":
		rest = "/"
	case slash:
		return span{}, false
	}
	mark := strings.Index(v.link.origin, "://")
	size := len(v.link.origin) - mark
	at, ok := findText(text, "://", func(at span) bool {
		start, end := at.start-mark, at.start+size
		return start >= 0 && end <= len(text) && strings.EqualFold(text[start:end], v.link.origin) &&
			strings.HasPrefix(text[end:], rest) && stands(span{start, end + len(rest)})
	})
	return span{at.start - mark, at.start + size + len(rest)}, ok
}

// findCompact finds an IBAN or a phone number with spaces of its own.
func (v *value) findCompact(text string, stands func(span) bool) (at span, ok bool) {
	if v.compact == "" {
		return span{}, false
	}
	_, ok = findText(text, v.compact[:1], func(first span) bool {
		end, matches := spacedEnd(text, first.start, v.compact)
		at = span{first.start, end}
		return matches && compactOf(text[at.start:at.end]) == v.compact && stands(at)
	})
	return at, ok
}

// findAmount finds the amount. A currency or thousands take the place of a word before it.
func (v *value) findAmount(p *passage) (span, bool) {
	if v.amount.number == "" {
		return span{}, false
	}
	for _, m := range p.matches(v.finder, &p.amounts, amountPattern) {
		for _, withCurrency := range []bool{true, false} {
			v.finder.spend(200)
			a, at := readAmount(p.text, m, withCurrency)
			if v.amount.covers(a) && v.standsAt(p.text, at) && (a.marked || v.longEnough(p.text, at)) {
				return at, true
			}
		}
	}
	return span{}, false
}

func (v *value) findDate(p *passage) (span, bool) {
	if v.date == "" || !strings.Contains(p.text, v.date[:4]) {
		return span{}, false
	}
	for _, m := range p.matches(v.finder, &p.dates, datePattern) {
		at := span{m[0], m[1]}
		if v.finder.spend(patternSteps) && dateOf(p.text[at.start:at.end]) == v.date && v.standsAt(p.text, at) {
			return at, true
		}
	}
	return span{}, false
}

// matches returns where a pattern matches in the passage, which is known once it was needed.
func (p *passage) matches(f *finder, known *[][]int, pattern *regexp.Regexp) [][]int {
	if *known == nil && f.spend(400*len(p.text)) {
		*known = pattern.FindAllStringSubmatchIndex(p.text, -1)
	}
	return *known
}

// findHandle finds #x or @x for x, and x for #x or @x.
func (v *value) findHandle(text string, stands func(span) bool) (span, bool) {
	switch {
	case v.handle == "":
		return span{}, false
	case v.sign != "":
		return findText(text, v.handle, func(at span) bool { return lastRune(text[:at.start]) != '#' && stands(at) })
	}
	at, ok := findText(text, "@"+v.handle, func(at span) bool {
		return v.standsAt(text, at) && v.longEnough(text, span{at.start + 1, at.end})
	})
	return at, ok
}
