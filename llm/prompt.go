package llm

import (
	_ "embed" // the prompts and the schema of plans
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/evidence"
)

// The rules of the prompts. Bounds stand as %d in them.
var (
	//go:embed plan.prompt.txt
	planRules string
	//go:embed summary.prompt.txt
	summaryRules string
)

// planSchema is the schema of docs/reference/agent-contract.md. It repeats the type of the root,
// because some endpoints require it.
//
//go:embed plan.schema.json
var planSchema []byte

// PromptVersion names the wording of both prompts and their schemas. Every change of them needs a
// new version.
const PromptVersion = "pgfsm.prompt/v1"

// MaxPromptBytes bounds a prompt, both messages together.
const MaxPromptBytes = 256 << 10

// ErrPrompt means that no prompt could be built from the inputs, so nothing was sent.
var ErrPrompt = errors.New("nothing was sent to the model")

// A prompt is the input of a model: a message with rules and data, a message with the request, and
// the schema of the answer.
type prompt struct {
	system, user string
	format       string // the schema's name
	schema       []byte
}

// planPrompt is the prompt for a plan. It contains only the tools of allowed, in their order.
func planPrompt(request string, allowed []Tool) (prompt, error) {
	lines := make([]string, len(allowed))
	for i := range allowed {
		var err error
		if lines[i], err = toolLine(allowed[i]); err != nil {
			return prompt{}, err
		}
	}
	rules := fmt.Sprintf(planRules, policy.MaxAnswerBytes)
	room := MaxPromptBytes - len(rules) - len(dataBlock("TOOLS")) - len(request)
	return newPrompt(prompt{
		system: rules + dataBlock("TOOLS", fittingLines(allowed, lines, room)...),
		user:   request,
		format: "pgfsm_plan",
		schema: planSchema,
	}, "shorten the request")
}

// fittingLines returns the lines that fit into room bytes, in their order. If not all lines fit,
// each server gets the same share of the room, and the lines beyond a share are omitted: so a
// server with many tools does not displace other servers' tools.
func fittingLines(allowed []Tool, lines []string, room int) []string {
	total := 0
	used := make(map[string]int)
	for i, line := range lines {
		total += len(line)
		used[allowed[i].Server] = 0
	}
	if total <= room {
		return lines
	}
	share := max(room, 0) / max(len(used), 1)
	var fits []string
	for i, line := range lines {
		if server := allowed[i].Server; used[server]+len(line) <= share {
			used[server] += len(line)
			fits = append(fits, line)
		}
	}
	return fits
}

// toolLine is the line of a tool in the prompt.
func toolLine(t Tool) (string, error) {
	schema, err := canonical.JSON(t.InputSchema)
	if len(schema) > 0 && schema[0] != '{' {
		err = errors.New("it is not a JSON object")
	}
	if err != nil {
		return "", fmt.Errorf("%w: the inputSchema of %q of %q cannot be shown: %w", ErrPrompt, t.Name, t.Server, err)
	}
	return dataLine(canonical.MustSorted(&struct {
		Description string         `json:"description"`
		InputSchema jsontext.Value `json:"inputSchema"`
		Server      string         `json:"server"`
		Title       string         `json:"title"`
		Tool        string         `json:"tool"`
	}{t.Description, schema, t.Server, t.Title, t.Name})), nil
}

// summaryPrompt is the prompt for a summary.
func summaryPrompt(request string, typed []byte) (prompt, error) {
	doc, err := canonical.JSON(typed)
	if err != nil {
		return prompt{}, fmt.Errorf("%w: the result cannot be shown: %w", ErrPrompt, err)
	}
	rules := fmt.Sprintf(summaryRules,
		evidence.MaxItems, evidence.MaxClaimBytes, evidence.MaxEvidenceBytes, evidence.MinWords)
	return newPrompt(prompt{
		system: rules + dataBlock("RESULT", dataLine(doc)),
		user:   request,
		format: "pgfsm_summary",
		schema: evidence.Schema(),
	}, "ask for no summary, or for less")
}

// newPrompt checks what both prompts have in common. remedy says what to do if the prompt is too
// large.
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

// dataBlock puts lines of data between two lines that no data can contain: [dataLine] leaves no <
// in them.
func dataBlock(name string, lines ...string) string {
	return "<<<BEGIN " + name + ">>>\n" + strings.Join(lines, "") + "<<<END " + name + ">>>\n"
}

// dataLine returns a document of canonical JSON as one line, which looks the same to a reader and
// to a model. Invisible characters (controls, line ends, bidi controls, default-ignorables, tag
// characters, unusual spaces) and <, > and & become JSON escapes. They can occur only in strings.
func dataLine(doc []byte) string {
	var b strings.Builder
	b.Grow(len(doc) + 1)
	for _, r := range string(doc) {
		switch plain := !strings.ContainsRune("<>&", r) && visible.Text(string(r)) == string(r); {
		case plain:
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
