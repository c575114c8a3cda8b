package main

import (
	"io"

	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
)

// forScreen returns a writer to the writer to, for JSON documents, whole or in pieces that end between characters. If screen is a terminal,
// it escapes characters that do not show as themselves. Otherwise it changes nothing, because hashes cover these bytes.
func forScreen(screen, to io.Writer) io.Writer {
	if cli.IsTerminal(screen) {
		return escaping{to}
	}
	return to
}

type escaping struct{ to io.Writer }

func (e escaping) Write(doc []byte) (int, error) {
	if _, err := io.WriteString(e.to, visible.JSON(doc)); err != nil {
		return 0, err
	}
	return len(doc), nil
}
