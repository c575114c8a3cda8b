package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval/attack"
)

// maxLeftOut is how many files are named because they were left out; more are counted.
const maxLeftOut = 10

var (
	errNoResult  = errors.New("it holds no result of pgfsm-eval attack; the results of eval gates and eval e2e are found by their names")
	errIrregular = errors.New("it is not a regular file, and links are not followed")
)

// isAttack reports whether a document is a result of attacks, of any version: a document with mistakes is one as well, so that the
// mistake is reported.
func isAttack(doc []byte) bool {
	var named struct {
		Format string `json:"format"`
	}
	// What comes before a mistake is decoded.
	_ = json.Unmarshal(doc, &named, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return withoutVersion(named.Format) == withoutVersion(attack.Format)
}

func withoutVersion(format string) string {
	name, _, _ := strings.Cut(format, "/")
	return name
}

// leave notes a file that is left out, and why.
func (r *Results) leave(name string, why error) {
	if r.left++; r.left <= maxLeftOut {
		r.leftOut = append(r.leftOut, fmt.Sprintf("%s was left out: %v", show(name), why))
	}
}

// notRead names the JSON files of the folder that are not on the page.
func (r *Results) notRead() []string {
	if more := r.left - len(r.leftOut); more > 0 {
		return append(slices.Clone(r.leftOut), plural(more, "more JSON file was left out", "more JSON files were left out"))
	}
	return r.leftOut
}
