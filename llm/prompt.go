package llm

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// PromptVersion names the wording of both prompts and their schemas. Every change of them needs a new version.
const PromptVersion = "pgfsm.prompt/v1"

// MaxPromptBytes bounds a prompt, both messages together.
const MaxPromptBytes = 256 << 10

// ErrPrompt means that no prompt could be built from the inputs, so nothing was sent.
var ErrPrompt = errors.New("nothing was sent to the model")

// A prompt is the input of a model: a message with rules and data, a message with the request, and the schema of the answer.
type prompt struct {
	system, user string
	format       string // the schema's name
	schema       []byte
}

// newPrompt checks what both prompts have in common. remedy says what to do if the prompt is too large.
func newPrompt(p prompt, remedy string) (prompt, error) {
	if !utf8.ValidString(p.user) {
		return prompt{}, fmt.Errorf("%w: the request is not UTF-8 text", ErrPrompt)
	}
	if n := len(p.system) + len(p.user); n > MaxPromptBytes {
		return prompt{}, fmt.Errorf("%w: the prompt has %d bytes, at most %d are sent; %s",
			ErrPrompt, n, MaxPromptBytes, remedy)
	}
	var err error
	p.schema, err = canonical.JSON(p.schema)
	return p, err
}

// block puts lines of data between two lines that no data can contain: [dataLine] leaves no < in them.
func block(name string, lines ...string) string {
	return "<<<BEGIN " + name + ">>>\n" + strings.Join(lines, "") + "<<<END " + name + ">>>\n"
}

// dataLine returns a document of canonical JSON as one line, which looks the same to a reader and to a model. Invisible characters (controls, line ends,
// bidi controls, default-ignorables, tag characters, unusual spaces) and <, > and & become JSON escapes. They can occur only in strings.
func dataLine(doc []byte) string {
	var b strings.Builder
	b.Grow(len(doc) + 1)
	for _, r := range string(doc) {
		switch shown := !strings.ContainsRune("<>&", r) && visible.Text(string(r)) == string(r); {
		case shown:
			b.WriteRune(r)
		case r > 0xffff: // as a pair of surrogates: RFC 8259, section 7
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('\n')
	return b.String()
}
