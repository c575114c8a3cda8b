package main

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"pgfsm/policy/visible"
)

// asciiControls writes every character of a JSON document that does not show as itself as a \u escape. Outside of
// strings a document has only ASCII, so the document's value stays the same.
func asciiControls(doc []byte) string {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case r == '\n' || visible.Text(string(r)) == string(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
