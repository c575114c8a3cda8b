package present

import (
	"strings"

	"pgfsm/internal/visible"
)

// CommandLine writes a command for a shell, with quotes where a word needs them.
func CommandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !visible.PlainWord(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return visible.Text(strings.Join(quoted, " "))
}
