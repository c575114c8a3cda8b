package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// markdown writes the same figures as tables. It leaves out charts and the drawing, which repeat figures of tables, and the rows
// of folded tables.
func (p *page) markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", plain(p.Title))
	for _, l := range p.Lead {
		fmt.Fprintf(&b, "\n%s\n", plain(l))
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		if !slices.ContainsFunc(s.Blocks, block.written) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", plain(s.Title))
		for _, k := range s.Blocks {
			k.markdown(&b)
		}
	}
	return []byte(b.String())
}

// written reports whether a block has more than its heading in Markdown.
func (k block) written() bool {
	return k.Para != "" || k.Table != nil || k.Folded != nil || k.Commands != nil
}

func (k block) markdown(b *strings.Builder) {
	if k.Heading != "" && (k.Charts == nil || k.Para != "") {
		fmt.Fprintf(b, "\n### %s\n", plain(k.Heading))
	}
	if k.Para != "" {
		fmt.Fprintf(b, "\n%s\n", plain(k.Para))
	}
	if k.Table != nil {
		k.Table.markdown(b)
	}
	if k.Folded != nil {
		fmt.Fprintf(b, "\n- %s\n", plain(k.Folded.Caption))
	}
	if k.Commands != nil {
		fence(b, strings.Join(k.Commands, "\n"))
	}
}

func (t *table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s:\n\n|", plain(t.Caption))
	for _, c := range t.Columns {
		fmt.Fprintf(b, " %s |", plain(c.Name))
	}
	b.WriteString("\n|")
	for _, c := range t.Columns {
		if c.Number {
			b.WriteString(" ---: |")
		} else {
			b.WriteString(" --- |")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		b.WriteString("|")
		for _, c := range row {
			b.WriteString(" " + plain(c.Text))
			if c.Note != "" {
				b.WriteString(", " + plain(c.Note))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
}

// fence writes a block of code whose text cannot end it.
func fence(b *strings.Builder, text string) {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	mark := strings.Repeat("`", longest+1)
	fmt.Fprintf(b, "\n%s\n", mark)
	for line := range strings.Lines(text) {
		fmt.Fprintf(b, "%s\n", strings.TrimSuffix(line, "\n"))
	}
	fmt.Fprintf(b, "%s\n", mark)
}

// plain escapes text for Markdown. Characters that could mean something become entities: in a table a backslash does not help,
// because cells are cut first.
func plain(s string) string {
	var b strings.Builder
	runes := []rune(s)
	word := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, r := range runes {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r == '_' && word(i-1) && word(i+1), // as in most names: it opens no emphasis within a word
			r == '>' && i > 0, r == '-' && i > 0, r == '#' && i > 0, r == '+' && i > 0: // they mean something at the beginning only
			b.WriteRune(r)
		case strings.ContainsRune("\\`*_{}[]<>&|~!$@^#+-=", r), r == ':' && strings.HasPrefix(string(runes[i+1:min(i+3, len(runes))]), "//"):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
