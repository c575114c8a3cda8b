package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A span is a piece of a text.
type span struct{ start, end int }

// A detector finds personal data of one form. Its name is part of the configuration.
type detector struct {
	name string
	// at returns the end of a finding that begins at s[i], or 0.
	at func(s string, i int) int
}

// detectors are all detectors. Each looks at a text as it is, without decoding it.
var detectors = []detector{
	{"email", nil}, // findEmails: only its @ says where one may be
	{"iban", ibanAt},
	{"card", cardAt},
	{"us_ssn", ssnAt},
	{"phone", phoneAt},
}

// find returns what the detector finds, in order and without overlaps.
func (d *detector) find(s string) (found []span) {
	if d.at == nil {
		return findEmails(s)
	}
	for i := 0; i < len(s); i++ {
		if !beginsAt(s, i) {
			continue
		}
		if end := d.at(s, i); end > 0 {
			found = append(found, span{i, end})
			i = end - 1
		}
	}
	return found
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isWord reports whether r is a digit or a Latin letter. Other scripts write no spaces around numbers.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isDigit(byte(r)) || isLetter(byte(r))
	}
	return unicode.Is(unicode.Latin, r)
}

// beginsAt reports whether no letter or digit is before s[i].
func beginsAt(s string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s[:i])
	return !isWord(r)
}

// endsAt reports whether no letter or digit is at s[i].
func endsAt(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return !isWord(r)
}

// readGroups reads characters that accept takes from s[i:], at most most of them, with at most gap bytes of
// separators between two. It returns them, and for each the index behind it.
func readGroups(s string, i, most, gap int, separators string, accept func(byte) bool) (read []byte, ends []int) {
	for skipped := 0; i < len(s) && len(read) < most; i++ {
		switch {
		case accept(s[i]):
			read, ends, skipped = append(read, s[i]), append(ends, i+1), 0
		case len(read) > 0 && skipped < gap && strings.IndexByte(separators, s[i]) >= 0:
			skipped++
		default:
			return read, ends
		}
	}
	return read, ends
}

// Bytes of an address before its @, beside letters and digits.
const localSigns = "._%+-'"

// findEmails finds addresses: a local part, @, and a domain with a dot whose last label has only letters.
func findEmails(s string) (found []span) {
	isOther := func(signs string) func(rune) bool {
		return func(r rune) bool { return !isWord(r) && !strings.ContainsRune(signs, r) }
	}
	for from := 0; ; {
		sign := strings.IndexByte(s[from:], '@')
		if sign < 0 {
			return found
		}
		sign += from
		local, domain := s[from:sign], s[sign+1:]
		if i := strings.LastIndexFunc(local, isOther(localSigns)); i >= 0 {
			_, size := utf8.DecodeRuneInString(local[i:])
			local = local[i+size:]
		}
		if i := strings.IndexFunc(domain, isOther(".-")); i >= 0 {
			domain = domain[:i]
		}
		from = sign + 1 + len(domain)
		local, domain = strings.TrimLeft(local, ".-'"), strings.TrimRight(domain, ".-")
		if local != "" && isDomain(domain) {
			found = append(found, span{sign - len(local), sign + 1 + len(domain)})
		}
	}
}

// isDomain reports whether s is a domain: labels with dots between them, the last of letters.
func isDomain(s string) bool {
	labels := strings.Split(s, ".")
	last := labels[len(labels)-1]
	isName := strings.HasPrefix(last, "xn--") || !strings.ContainsFunc(last, func(r rune) bool { return r == '-' || '0' <= r && r <= '9' })
	return len(labels) > 1 && len(last) > 1 && isName && !slices.Contains(labels, "")
}

// ibanLengths has each country's code and the length of its numbers (SWIFT's registry of IBAN formats).
const ibanLengths = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27" +
	"GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19" +
	"MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24" +
	"TR26UA29VA22VG24XK20YE30"

// ibanAt reads an IBAN: country, check digits and account, with the length of the country and the remainder 1
// (ISO 13616, mod 97).
func ibanAt(s string, i int) int {
	if len(s) < i+4 || !isLetter(s[i]) || !isLetter(s[i+1]) || !isDigit(s[i+2]) || !isDigit(s[i+3]) {
		return 0
	}
	length := 0
	for row := ibanLengths; row != ""; row = row[4:] {
		if strings.EqualFold(row[:2], s[i:i+2]) {
			length = int(row[2]-'0')*10 + int(row[3]-'0')
		}
	}
	accept := func(c byte) bool { return isDigit(c) || isLetter(c) }
	read, ends := readGroups(s, i, length, 1, " -", accept)
	if length == 0 || len(read) < length || !endsAt(s, ends[length-1]) {
		return 0
	}
	remainder := 0
	for _, c := range append(read[4:], read[:4]...) {
		if isDigit(c) {
			remainder = (remainder*10 + int(c-'0')) % 97
		} else {
			remainder = (remainder*100 + int(c|0x20-'a') + 10) % 97
		}
	}
	if remainder != 1 {
		return 0
	}
	return ends[length-1]
}

// cardPrefixes are the beginnings of card numbers, as ranges, with the lengths that issuers use.
var cardPrefixes = []struct {
	low, high string
	lengths   []int
}{
	{"4", "4", []int{13, 16, 19}},                        // Visa
	{"51", "55", []int{16}}, {"2221", "2720", []int{16}}, // Mastercard
	{"34", "34", []int{15}}, {"37", "37", []int{15}}, // American Express
	{"6011", "6011", []int{16, 19}}, {"644", "649", []int{16, 19}}, {"65", "65", []int{16, 19}}, // Discover
	{"300", "305", []int{14}}, {"36", "36", []int{14}}, {"38", "39", []int{14}}, // Diners Club
	{"3528", "3589", []int{16}},         // JCB
	{"62", "62", []int{16, 17, 18, 19}}, // UnionPay
}

// cardAt reads the number of a payment card: an issuer's prefix and length, and a check digit (ISO 7812, Luhn).
func cardAt(s string, i int) int {
	if !isDigit(s[i]) || i > 1 && s[i-1] == '.' && isDigit(s[i-2]) { // digits behind a decimal point
		return 0
	}
	digits, ends := readGroups(s, i, 19, 1, " -", isDigit)
	for n := len(digits); n >= 13; n-- {
		if endsAt(s, ends[n-1]) && isCard(string(digits[:n])) {
			return ends[n-1]
		}
	}
	return 0
}

func isCard(digits string) bool {
	known := false
	for _, p := range cardPrefixes {
		prefix := digits[:len(p.low)]
		known = known || p.low <= prefix && prefix <= p.high && slices.Contains(p.lengths, len(digits))
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d = d*2/10 + d*2%10
		}
		sum += d
	}
	return known && sum%10 == 0
}

// ssnAt reads a US social security number: 3, 2 and 4 digits with the same separator between them, in the
// ranges that are issued.
func ssnAt(s string, i int) int {
	const form = "ddd-dd-dddd"
	if len(s) < i+len(form) || !endsAt(s, i+len(form)) || s[i+3] != s[i+6] {
		return 0
	}
	for k := range len(form) {
		if c := s[i+k]; isDigit(c) != (form[k] == 'd') || form[k] == '-' && c != '-' && c != ' ' {
			return 0
		}
	}
	area, group, serial := s[i:i+3], s[i+4:i+6], s[i+7:i+11]
	if area == "000" || area == "666" || area[0] == '9' || group == "00" || serial == "0000" {
		return 0
	}
	return i + len(form)
}

// Digits of a phone number with its country code (E.164).
const minPhone, maxPhone = 8, 15

// phoneAt reads an international phone number: +, a country code and the number, with the usual separators.
func phoneAt(s string, i int) int {
	if s[i] != '+' || i+1 == len(s) || s[i+1] == '0' {
		return 0
	}
	digits, ends := readGroups(s, i+1, maxPhone, 3, " .-()/", isDigit)
	for n := len(digits); n >= minPhone; n-- {
		if endsAt(s, ends[n-1]) {
			return ends[n-1]
		}
	}
	return 0
}
