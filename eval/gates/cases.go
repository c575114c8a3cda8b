package gates

import (
	"embed"
	"encoding/base64"
	"fmt"
	"strings"

	"pgfsm/internal/canonical"
)

//go:embed cases/*.json
var caseFiles embed.FS

// load reads a table of cases strictly.
func load[T any](name string) (all []T, err error) {
	doc, err := caseFiles.ReadFile("cases/" + name + ".json")
	if err != nil {
		return nil, err
	}
	if err := canonical.Unmarshal(doc, &all); err != nil {
		return nil, fmt.Errorf("cases/%s.json: %w", name, err)
	}
	return all, nil
}

// A written text is a text of a table: as it is, or in parts if it is large or not UTF-8.
type written struct {
	Text  string `json:"text"`
	Parts []part `json:"parts"`
}

// A part is a piece of a written text.
type part struct {
	Text   string `json:"text"`
	Base64 string `json:"base64"`
	Times  int    `json:"times"` // 0 is once
}

// bytes returns the text.
func (w *written) bytes() ([]byte, error) {
	var b strings.Builder
	b.WriteString(w.Text)
	for _, p := range w.Parts {
		text := p.Text
		if p.Base64 != "" {
			raw, err := base64.StdEncoding.DecodeString(p.Base64)
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		b.WriteString(strings.Repeat(text, max(p.Times, 1)))
	}
	return []byte(b.String()), nil
}
