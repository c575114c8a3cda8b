package states_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
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
		check.NoError(t, err)
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

// maxFunctionWordNames is how many functions may be named by a function word: those that an interface of Go names so, or a clock. It only falls.
const maxFunctionWordNames = 8

// functionWords are pronouns, prepositions, adverbs and bare participles. They say neither what a function does nor what it returns.
var functionWords = regexp.MustCompile(`(?i)^(of|on|by|at|as|to|in|from|with|over|beside|again|late|all|so|does|says|is|has|had|was|got|using|stands|look|told|` +
	`before|since|until|else|yet|whole|rest|own|ours|mine|theirs|above|below|apart|ahead|alike|among|any|away|both|but|each|few|into|near|not|only|still|` +
	`those|via|why|here|there|now|once|plus|same|held|kept|shown|alone|standing|given|wanted|judged|asked|known|seen|done|gone|made|taken)$`)

// TestHouseFunctionNames counts functions of the product whose name is a function word.
func TestHouseFunctionNames(t *testing.T) {
	var named []string
	goFiles(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, fn := range functions(file) {
			if functionWords.MatchString(fn.Name.Name) {
				named = append(named, path+" "+fn.Name.Name)
			}
		}
	})

	if len(named) > maxFunctionWordNames {
		t.Errorf("%d functions are named by a function word, want at most %d; name them by what they do or return:\n%s",
			len(named), maxFunctionWordNames, strings.Join(named, "\n"))
	}
	if len(named) < maxFunctionWordNames {
		t.Errorf("maxFunctionWordNames is %d, and only %d functions are named so: lower it", maxFunctionWordNames, len(named))
	}
}
