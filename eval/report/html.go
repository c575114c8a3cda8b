package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// write makes the HTML page: one file that loads nothing. Its policy lets the browser do nothing either: no script, no
// frame, no form, no image, no request, and no style but the one whose digest it names. So what a file holds could do
// nothing even if it came into the page as markup.
func (p *page) html() ([]byte, error) {
	style := "\n" + strings.TrimSpace(pageCSS) + "\n" + p.drawnStyle()
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

// drawnStyle is the style sheet of the machine's drawings, which is the same for all of them.
func (p *page) drawnStyle() string {
	for _, s := range p.Sections {
		for _, b := range s.Blocks {
			if b.Picture != nil {
				return b.Picture.Drawing.Style + "\n"
			}
		}
	}
	return ""
}
