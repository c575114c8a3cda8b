package main

import (
	"fmt"
	"io"
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

// forScreen returns a writer to one that leads to a screen, for JSON documents, whole or in pieces that end between characters. If the screen
// is a terminal, characters that do not show as themselves are written as escapes; elsewhere nothing is changed, for hashes are over
// those bytes.
func forScreen(screen, to io.Writer) io.Writer {
	if isTerminal(screen) {
		return escaping{to}
	}
	return to
}

type escaping struct{ to io.Writer }

func (e escaping) Write(doc []byte) (int, error) {
	if _, err := io.WriteString(e.to, asciiControls(doc)); err != nil {
		return 0, err
	}
	return len(doc), nil
}
