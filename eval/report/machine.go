package report

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pgfsm/fsm"
)

// An edge is a row of the machine's table, with how many runs took it.
type edge struct {
	fsm.Mark
	Runs int
}

// A drawing is the machine with its edges weighted. Its HTML is made of the machine's own table, of which every text was
// escaped by package fsm, and of numbers: nothing of a file stands in it.
type drawing struct {
	HTML  template.HTML
	Style string // the style sheet that was in it: a page has one
}

// How strong edges are drawn.
const (
	thinnest = 1.5 // the fewest runs that took an edge at all
	thickest = 9.0 // the most
	headGrow = 1.5 // of half an arrow head beyond half its edge
	minHead  = 4.0 // half an arrow head of a thin edge, as fsm draws it
)

// The shapes of what fsm.SVG writes. Every edge is a group: title lines, the path, the head, the label.
var (
	titleOf = regexp.MustCompile(`^<g><title>([a-z0-9_]+) -([a-z0-9_]+)-&gt; ([a-z0-9_]+)$`)
	headOf  = regexp.MustCompile(`^<path d="M(\d+) (\d+)L(\d+) (\d+)L(\d+) (\d+)Z"`)
	widthOf = regexp.MustCompile(`stroke-width="[0-9.]+"`)
	placeOf = regexp.MustCompile(`^<g id="([a-z0-9_]+)"><title>`)
	textOf  = regexp.MustCompile(`^<text x="(\d+)" y="(\d+)"`)
	rectOf  = regexp.MustCompile(`^<rect x="(\d+)" y="(\d+)" width="(\d+)"`)
	tonesOf = regexp.MustCompile(`(class="[^"]*")( (?:fill|stroke)="[^"]*")*`)
)

// errPicture means that package fsm draws in another way than this package reads. It is a mistake in this program.
var errPicture = errors.New("the drawing of the machine has another form than expected")

// draw draws the machine, each edge as strong as there were runs that took it. Edges that the table does not have are not
// drawn; the table of edges has them.
func draw(s *fsm.Spec, edges []edge) (drawing, error) {
	w := weights{spec: s, runs: make(map[fsm.Mark]int), ended: make(map[string]int)}
	for _, e := range edges {
		w.runs[e.Mark] += e.Runs
		if s.Allows(e.From, e.On, e.To) {
			w.ended[string(e.To)] += e.Runs
			w.most = max(w.most, w.runs[e.Mark])
		}
	}
	lines := strings.Split(strings.TrimSuffix(string(fsm.SVG(s, nil)), "\n"), "\n")
	style, rest, err := cutStyle(lines)
	if err != nil {
		return drawing{}, err
	}
	drawn, err := w.lines(rest)
	if err != nil {
		return drawing{}, err
	}
	return drawing{HTML: template.HTML(strings.Join(drawn, "\n")), Style: style}, nil
}

// cutStyle takes out the style sheet.
func cutStyle(lines []string) (style string, rest []string, err error) {
	for i, l := range lines {
		if css, ok := strings.CutPrefix(l, "<style>"); ok && strings.HasSuffix(css, "</style>") {
			return strings.TrimSuffix(css, "</style>"), slices.Concat(lines[:i], lines[i+1:]), nil
		}
	}
	return "", nil, fmt.Errorf("%w: it has no style sheet", errPicture)
}

// weights is how many runs took each edge, and the drawing that is made of it.
type weights struct {
	spec  *fsm.Spec
	runs  map[fsm.Mark]int // looked up, never ranged over
	ended map[string]int   // how many runs came to a place, by the same edges; looked up
	most  int

	found int        // edges that were drawn
	taken []weighted // of them: those that runs took
}

// weighted is an edge that runs took, as it is drawn.
type weighted struct {
	runs         int
	arrow, label []string
}

// lines changes the groups of edges and places, and leaves all else. What nobody took lies below what was taken, broad edges
// below narrow ones, and labels on top of both.
func (w *weights) lines(all []string) (drawn []string, err error) {
	var places []string
	for i := 0; i < len(all); i++ {
		if m := placeOf.FindStringSubmatch(all[i]); m != nil {
			// Names of places are no ids of the page: it may hold the machine more than once.
			places = append(places, "<g>"+strings.TrimPrefix(all[i], `<g id="`+m[1]+`">`))
			if at := rectOf.FindStringSubmatch(all[i+1]); at != nil && w.terminal(m[1]) && w.ended[m[1]] > 0 {
				places = append(places, reached(at, w.ended[m[1]]))
			}
			continue
		}
		switch {
		case strings.HasPrefix(all[i], "<g><title>"):
			end := i + slices.Index(all[i:], "</g>")
			if end < i {
				return nil, fmt.Errorf("%w: an edge does not end", errPicture)
			}
			pale, err := w.edge(all[i:end])
			if err != nil {
				return nil, err
			}
			drawn, i = append(drawn, pale...), end
		case places != nil:
			places = append(places, all[i])
		default:
			drawn = append(drawn, all[i])
		}
	}
	if w.found != len(w.spec.Rows) {
		return nil, fmt.Errorf("%w: it has %d edges, the table %d rows", errPicture, w.found, len(w.spec.Rows))
	}
	slices.SortStableFunc(w.taken, func(a, b weighted) int { return b.runs - a.runs })
	for _, e := range w.taken {
		drawn = append(drawn, e.arrow...)
	}
	for _, e := range w.taken {
		drawn = append(drawn, e.label...)
	}
	return append(drawn, places...), nil
}

func (w *weights) terminal(place string) bool {
	return slices.ContainsFunc(w.spec.Places, func(p fsm.Place) bool { return string(p.State) == place && p.Terminal })
}

// reached is the text above a terminal place: how many runs ended there.
func reached(rect []string, runs int) string {
	x, _ := strconv.Atoi(rect[1]) // digits, and few of them: fsm wrote them
	y, _ := strconv.Atoi(rect[2])
	width, _ := strconv.Atoi(rect[3])
	return fmt.Sprintf(`<text x="%d" y="%d" class="f-name s-none" fill="#1f2328" text-anchor="middle" font-size="13" font-weight="700">%s</text>`,
		x+width/2, y-8, plural(runs, "run", "runs"))
}

// edge draws one arrow, which stands for one row or, between neighbours, for several. One that runs took is kept for later.
func (w *weights) edge(group []string) (pale []string, err error) {
	end := slices.IndexFunc(group, func(l string) bool { return strings.HasSuffix(l, "</title>") })
	if end < 0 || len(group) != end+4 {
		return nil, fmt.Errorf("%w: an edge of %d lines", errPicture, len(group))
	}
	runs := 0
	for i, l := range group[:end] {
		if m := titleOf.FindStringSubmatch(titled(i, l)); m != nil {
			runs += w.runs[fsm.Mark{From: fsm.State(m[1]), On: fsm.Trigger(m[2]), To: fsm.State(m[3])}]
			w.found++
		}
	}
	titles := slices.Clone(group[:end+1])
	path, head, label := group[end+1], group[end+2], group[end+3]
	titles[end] = strings.TrimSuffix(titles[end], "</title>") + "\n" + plural(runs, "run took it", "runs took it") + "</title>"
	if runs == 0 {
		return append(titles, tone(path, "none", "fade"), tone(head, "fade", "none"), tone(label, "dim", "none"), "</g>"), nil
	}
	width := thinnest + (thickest-thinnest)*float64(runs)/float64(max(1, w.most))
	path = widthOf.ReplaceAllString(tone(path, "none", "way"), `stroke-width="`+px(width)+`"`)
	if head, err = grown(tone(head, "way", "none"), max(minHead, width/2+headGrow)); err != nil {
		return nil, err
	}
	if label, err = counted(label, runs, width); err != nil {
		return nil, err
	}
	w.taken = append(w.taken, weighted{runs, append(slices.Clone(titles), path, head, "</g>"), append(titles, label, "</g>")})
	return nil, nil
}

// counted adds the number to a label, and lifts it off its edge. The rim in the colour of the background keeps it readable
// where it stands on another.
func counted(label string, runs int, width float64) (string, error) {
	text, ok := strings.CutSuffix(tone(label, "name", "none"), "</text>")
	m := textOf.FindStringSubmatch(text)
	if !ok || m == nil {
		return "", fmt.Errorf("%w: an edge without a label", errPicture)
	}
	y, _ := strconv.ParseFloat(m[2], 64) // digits: the expression says so
	lifted := `<text paint-order="stroke" font-weight="700" x="` + m[1] + `" y="` + px(y-width/2) + `"`
	return lifted + text[len(m[0]):] + " " + short(runs) + "</text>", nil
}

// titled is a line of a title as it would be if its edge stood first.
func titled(i int, l string) string {
	if i == 0 {
		return l
	}
	return "<g><title>" + l
}

// faces are the colours that a drawing has where no style sheet is in force.
var faces = map[string]string{"none": "none", "fade": "#d8dee4", "dim": "#8c959f", "way": "#0969da", "name": "#1f2328"}

// tone gives an element other colours.
func tone(element, fill, stroke string) string {
	rim := fmt.Sprintf(`class="f-%s s-%s" fill="%s" stroke="%s"`, fill, stroke, faces[fill], faces[stroke])
	if strings.HasPrefix(element, "<text ") && fill == "name" { // see counted
		rim = fmt.Sprintf(`class="f-%s s-back" fill="%s" stroke="#ffffff" stroke-width="3"`, fill, faces[fill])
	}
	at := tonesOf.FindStringIndex(element)
	if at == nil {
		return element
	}
	return element[:at[0]] + rim + element[at[1]:]
}

// grown gives an arrow head another half width.
func grown(head string, half float64) (string, error) {
	m := headOf.FindStringSubmatchIndex(head)
	if m == nil {
		return "", fmt.Errorf("%w: an edge without a head", errPicture)
	}
	var at [6]float64
	for i := range at {
		at[i], _ = strconv.ParseFloat(head[m[2+2*i]:m[3+2*i]], 64) // digits: the expression says so
	}
	x, y := (at[2]+at[4])/2, (at[3]+at[5])/2 // the middle of the base
	by := half / math.Max(1, math.Hypot(at[2]-x, at[3]-y))
	at[2], at[3], at[4], at[5] = x+(at[2]-x)*by, y+(at[3]-y)*by, x+(at[4]-x)*by, y+(at[5]-y)*by
	return fmt.Sprintf(`<path d="M%s %sL%s %sL%s %sZ"%s`, px(at[0]), px(at[1]), px(at[2]), px(at[3]), px(at[4]), px(at[5]), head[m[1]:]), nil
}

// short writes a number so that there is room for it beside an edge: the whole of it is in the title and in the table.
func short(n int) string {
	for _, unit := range []struct {
		size int
		sign string
	}{{1_000_000_000, "G"}, {1_000_000, "M"}, {1_000, "k"}} {
		if n >= unit.size && n >= 10_000 {
			return strconv.Itoa(n/unit.size) + unit.sign
		}
	}
	return strconv.Itoa(n)
}

// byTable puts edges into the order of the machine's table; those that it does not have come last, by their names.
func byTable(s *fsm.Spec, edges []edge) {
	rank := func(e edge) int {
		i := slices.IndexFunc(s.Rows, func(r fsm.SpecRow) bool { return r.From == e.From && r.On == e.On && r.To == e.To })
		if i < 0 {
			return len(s.Rows)
		}
		return i
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.From, b.From), cmp.Compare(a.On, b.On), cmp.Compare(a.To, b.To))
	})
}
