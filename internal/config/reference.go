package config

import (
	"regexp"
	"strings"
)

// The two kinds of reference.
const (
	fromEnv  = "env"
	fromFile = "file"
)

// piece is literal text, or a reference if source is not empty.
type piece struct{ text, source string }

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// hasReference reports whether a value looks as if it contained a reference.
func hasReference(s string) bool {
	return strings.Contains(s, "${"+fromEnv+":") || strings.Contains(s, "${"+fromFile+":")
}

// splitReferences splits a value at its references. $${ stands for the two characters ${.
func splitReferences(s string) ([]piece, fault) {
	var pieces []piece
	var literal strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			literal.WriteString(s)
			break
		}
		if i > 0 && s[i-1] == '$' {
			literal.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}

		literal.WriteString(s[:i])
		inner, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return nil, fault{"has a ${ that is never closed", "write $${ for the two characters themselves"}
		}

		source, name, _ := strings.Cut(inner, ":")
		switch {
		case source == fromEnv && envName.MatchString(name), source == fromFile && name != "":
		case source == fromEnv:
			return nil, fault{"has a ${env:…} that names no variable", "write ${env:NAME}"}
		case source == fromFile:
			return nil, fault{"has a ${file:} without a path", "write ${file:PATH}"}
		default:
			return nil, fault{"has a ${…} that is no reference",
				"write ${env:NAME} or ${file:PATH}, or $${ for the two characters themselves"}
		}

		if literal.Len() > 0 {
			pieces = append(pieces, piece{text: literal.String()})
			literal.Reset()
		}

		pieces = append(pieces, piece{name, source})
		s = rest
	}

	if literal.Len() > 0 {
		pieces = append(pieces, piece{text: literal.String()})
	}

	return pieces, fault{}
}

// isLiteral reports whether a value contains no reference.
func isLiteral(s string) bool {
	pieces, _ := splitReferences(s)
	for _, p := range pieces {
		if p.source != "" {
			return false
		}
	}
	return true
}
