package policy

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// The parts of a regular expression of ECMA 262 with the flag u, as far as isECMAPattern has to
// tell them from other dialects.
var (
	ecmaClass  = regexp.MustCompile(`\[\^?(?:\\.|[^\]\\])*\]`)
	ecmaEscape = regexp.MustCompile(`\\(?:[dDwWsSbBtnvfr0^$\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]+\}|` +
		`[pP]\{(?:[A-Z][a-z]?|Letter|Number|Emoji\w*|Extended_Pictographic|\w+=\w+)\})`)
	ecmaGroup  = regexp.MustCompile(`\(\?(?:<?[=!]|<[A-Za-z_$][\w$]*>)`)
	ecmaRepeat = regexp.MustCompile(`\{\d+(?:,\d*)?\}`)
)

// isECMAPattern reports whether a pattern is surely one of ECMA 262 with the flag u, with which the
// TypeScript SDK compiles patterns. It replaces what only ECMA has by what RE2 reads as well, and
// leaves the rest to RE2's parser.
func isECMAPattern(pattern string) bool {
	foreign := false
	escapes := func(s string) string { return ecmaEscape.ReplaceAllString(s, "e") }
	text := ecmaClass.ReplaceAllStringFunc(pattern, func(class string) string {
		class = escapes(strings.ReplaceAll(class, `\-`, "e"))
		foreign = foreign || strings.ContainsAny(class, `\`) || strings.Contains(class, "[:")
		return "e"
	})
	// What is left of backslashes, brackets and braces now is no part of ECMA 262.
	text = ecmaRepeat.ReplaceAllString(ecmaGroup.ReplaceAllString(escapes(text), "(?:"), "{1}")
	if foreign || strings.ContainsAny(text, `\]`) || strings.ContainsAny(strings.ReplaceAll(text, "{1}", ""), "{}") ||
		strings.Contains(strings.ReplaceAll(text, "(?:", ""), "(?") {
		return false
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return err == nil
}
