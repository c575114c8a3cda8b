// Package report makes one page from the results of the other evaluations in a folder: attacks
// (eval/attack), the gates alone (eval/gates), and pgfsm beside an agent without gates
// (eval/endtoend).
//
// The page is one HTML file that loads nothing and runs nothing. page.html is its template,
// page.css its style. Texts of files are not trusted: the page bounds their length, makes invisible
// characters visible, and escapes them. A list that is cut says how many entries are left out. A
// page holds no time: the same files give the same bytes.
package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"reflect"
	"strconv"
	"strings"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/visible"
)

// Bounds of the page. The figures are of everything.
const (
	maxNameBytes = 160  // for a name from a file
	maxCallBytes = 2000 // for a call
	maxEntries   = 200  // in one list
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"show":    showText,
	"call":    callText,
	"percent": percentText,
	"number":  func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
	"average": func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
	"arms":    attack.Arms,
	"first":   firstOf,
	"leftOut": leftOut,
}).Parse(pageHTML))

// HTML returns the page. Its content security policy forbids scripts, frames, forms, images and
// requests, and allows the one style sheet whose digest it names: text of a file could do nothing
// even as markup.
func (r *Results) HTML() ([]byte, error) {
	style := "\n" + strings.TrimSpace(pageCSS) + "\n"
	sum := sha256.Sum256([]byte(style))

	var page bytes.Buffer
	err := pageTemplate.Execute(&page, struct {
		*Results
		Policy string
		Style  template.CSS
	}{
		Results: r,
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'",
		Style: template.CSS(style), // our own text, byte for byte: its digest is in the policy
	})
	return page.Bytes(), err
}

// Missing names the kinds of results that the folder does not have, with the command that makes
// them, and the JSON files that the page leaves out.
func (r *Results) Missing() []string {
	missing := []string{}
	if len(r.Attacks) == 0 {
		missing = append(missing, "There are no results of attacks: make them with pgfsm-eval attack.")
	}
	if r.Metrics == nil {
		missing = append(missing, "There are no results of end to end runs: make them with pgfsm-eval e2e.")
	}
	if r.Gates == nil {
		missing = append(missing, "There are no results of the gates alone: make them with pgfsm-eval gates.")
	}
	return append(missing, r.leftOut...)
}

// showText makes a text from a file fit for a page: bounded, on one line, with every character
// visible.
func showText(text any) string { return visible.Clip(fmt.Sprint(text), maxNameBytes) }

// callText writes a call on one line.
func callText(c eval.Call) string {
	if c.Plan != nil {
		return visible.Clip("plan: "+string(*c.Plan), maxCallBytes)
	}
	args := c.Args.Clone()
	if args.Compact() != nil { // a file of results is indented
		args = c.Args
	}
	return visible.Clip(c.Server+"/"+c.Tool+" "+string(args), maxCallBytes)
}

// percentText writes a rate with one decimal place. Only 0 and 1 are shown as 0 and 100.
func percentText(rate float64) string {
	switch {
	case rate > 0 && rate < 0.0005:
		return "< 0.1 %"
	case rate < 1 && rate > 0.9995:
		return "> 99.9 %"
	}
	return strconv.FormatFloat(rate*100, 'f', 1, 64) + " %"
}

// firstOf returns the first entries of a list.
func firstOf(list reflect.Value) reflect.Value { return list.Slice(0, min(list.Len(), maxEntries)) }

// leftOut says how many entries of a list [firstOf] leaves out; nothing if there is none.
func leftOut(list reflect.Value) string {
	if list.Len() <= maxEntries {
		return ""
	}
	return fmt.Sprintf("%d more are left out.", list.Len()-maxEntries)
}
