package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"pgfsm/internal/cli"
)

// confirm asks the operator. Any answer but y or yes means no.
func (w world) confirm(question string) bool {
	fmt.Fprintf(w.stderr, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(w.stdin, 16)).ReadString('\n') // the end of the input means no
	if f, ok := w.stdin.(*os.File); err != nil || !ok || !cli.IsTerminal(f) {
		fmt.Fprintln(w.stderr) // end the question's line, because no Enter did
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
