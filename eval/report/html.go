package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"strings"

	"pgfsm/fsm"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// html makes the HTML page: one file that loads nothing. Its content security policy forbids scripts, frames, forms, images and
// requests, and allows the one style sheet whose digest it names: text of a file could do nothing even as markup.
func (p *page) html() ([]byte, error) {
	style := "\n" + strings.TrimSpace(pageCSS) + "\n" + fsm.SVGStyle() + "\n"
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Page   *page
		Policy string
		Style  template.CSS
	}{p, policy, template.CSS(style)}) // our own text, byte for byte: its digest is in the policy
	return b.Bytes(), err
}
