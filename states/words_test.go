package states_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// replacedWords are words of this project's own that have a standard term: see CONTRIBUTING.md.
var replacedWords = regexp.MustCompile(`(?i)^(errands?|heard|hears|hearing|voices?|unsent|mild|milder|skim|skims|skimmed|survey|surveys|spell|spells|spelt|unspell)$`)

// wordPattern finds the words of an identifier, a file name or a comment.
var wordPattern = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestHouseWords looks for replaced words in file names, identifiers, strings and comments.
func TestHouseWords(t *testing.T) {
	looked := 0
	goFiles(t, func(path string, _ *ast.File) {
		if filepath.Base(path) == "words_test.go" {
			return
		}
		looked++
		complain := func(where, text string) {
			for _, word := range wordPattern.FindAllString(text, -1) {
				if replacedWords.MatchString(word) {
					t.Errorf("%s: %s has the word %q", path, where, word)
				}
			}
		}
		complain("the file's name", strings.TrimSuffix(filepath.Base(path), ".go"))
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join("..", path), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			complain("a comment", group.Text())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				complain("an identifier", n.Name)
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					complain("a string", n.Value)
				}
			}
			return true
		})
	})
	if looked < 300 {
		t.Errorf("only %d files were looked at: the search is blind", looked)
	}
}
