package present

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A HeldCall is a held call with all that helps approvers to judge it.
type HeldCall struct {
	Approval
	Arguments Arguments
	Earlier   []Run  // the last calls by the same actor, in the same task if there is one
	Signs     []Sign // what is unusual about the call, worst first
	Usual     []Sign
	Track     Track

	Description string // what the server says about the tool
	Prompt      string // the prompt of the client's session before the call; empty if none is known
	Hints       string
	Bundle      *policy.Bundle // the run's own
}

// A Sign is something about a held call that helps to judge it.
type Sign struct {
	Kind   SignKind
	Text   string // the main point
	Detail string
}

// A SignKind says what a sign is about.
type SignKind string

// The kinds. An empty list of signs says nothing: approvers still read the arguments.
const (
	SignDanger   SignKind = "danger" // the highest risk mode
	SignRisk     SignKind = "risk"
	SignUnknown  SignKind = "unknown"  // a risk rule could not be evaluated
	SignReplaced SignKind = "replaced" // the server has another definition now
	SignHidden   SignKind = "hidden"   // characters that do not show as themselves
	SignDiffers  SignKind = "differs"  // from the last approved call
	SignDenied   SignKind = "denied"   // earlier calls of the actor
	SignFirst    SignKind = "first"    // no call of the tool was approved before
	SignPin      SignKind = "pin"
	SignOrigin   SignKind = "origin" // arguments that stand nowhere in the session
	SignUsual    SignKind = "usual"
)

// maxEarlier bounds the earlier calls.
const maxEarlier = 10

// ReadHeldCall reads a held call.
func ReadHeldCall(r ledger.Reader, p *traces.Replayer, run string) (h HeldCall, err error) {
	b, err := ledger.BoundOf(r, p, run)
	if err != nil {
		return h, err
	}
	h.Approval = NewApproval(&b)
	q := &h.Request
	h.Track, h.Bundle, h.Hints = NewTrack(q), b.Bundle, Hints(&policy.Annotations{})
	if b.Tool != nil {
		h.Description, h.Hints = b.Tool.Description, Hints(&b.Tool.Annotations)
	}
	last, err := LastApproved(r, q)
	if err != nil {
		return h, err
	}
	if h.Arguments, err = ReadArguments(r, q.Args, last); err != nil {
		return h, err
	}
	if h.Origins, err = readOrigins(r, b.Origins); err != nil {
		return h, err
	}
	h.Arguments.AddOrigins(h.Origins)

	first, err := firstEvent(r, b.Row.First)
	if err != nil {
		return h, err
	}
	if h.Prompt, err = findPrompt(r, &first); err != nil {
		return h, err
	}
	f := ledger.Filter{Actor: q.Actor, Task: q.Task, Before: q.Run, Newest: true}
	if h.Earlier, _, err = ReadRuns(r, f, maxEarlier); err != nil {
		return h, err
	}
	h.addOriginSigns(b.Origins)
	h.addSigns(IsHighest(b.Bundle.Content(), q.RiskMode))
	return h, nil
}

// IsHighest reports whether a risk mode is the highest one of a bundle.
func IsHighest(c *policy.Content, mode string) bool {
	if c == nil || c.Risk == nil || len(c.Risk.Modes) < 2 {
		return false
	}
	return c.Risk.Modes[len(c.Risk.Modes)-1].Name == mode
}

func (h *HeldCall) addSigns(highest bool) {
	unusual := func(kind SignKind, detail, format string, args ...any) {
		h.Signs = append(h.Signs, Sign{kind, fmt.Sprintf(format, args...), detail})
	}
	usual := func(text string) { h.Usual = append(h.Usual, Sign{SignUsual, text, ""}) }
	q := &h.Request

	h.addRiskSigns(highest)
	if places := h.hiddenPlaces(); len(places) > 0 {
		unusual(SignHidden, "They are marked where they stand.", "Characters that do not show as themselves: in %s.",
			joinPlaces(places))
	}
	if places := h.mixedPlaces(); len(places) > 0 {
		unusual(SignHidden, "The code points are those of the letters that are not Latin.",
			"Words with letters of two alphabets, which may look alike: %s.", joinPlaces(places))
	}
	if places := h.blankPlaces(); len(places) > 0 {
		unusual(SignHidden, "Scroll to what follows them.", "Many blank lines: in %s.", joinPlaces(places))
	}
	switch n, a := h.Arguments.Differ(), &h.Arguments; {
	case a.Compared == "":
		unusual(SignFirst, "", "No call of this tool was approved before.")
	case a.Partial:
		unusual(SignDiffers, "", "Not all arguments were compared with the last approved call; %d of those that were differ.", n)
	case n > 0:
		unusual(SignDiffers, "", "%d of %d arguments differ from the last approved call.", n, len(a.Values))
	default:
		usual("The arguments are the same as those of the last approved call.")
	}
	denied := 0
	for i := range h.Earlier {
		if h.Earlier[i].Status == ledger.Denied {
			denied++
		}
	}
	if denied > 0 {
		where := ""
		if q.Task != "" {
			where = " in this task"
		}
		unusual(SignDenied, "", "%d of the last %d calls of this requester%s were denied.", denied, len(h.Earlier), where)
	}
	switch h.Bound.Pin {
	case "":
		unusual(SignPin, "", "The tool is not pinned.")
	case q.Definition:
		usual("The definition is the pinned one, and the arguments conform to the schema.")
	default:
		unusual(SignPin, "", "The definition is not the pinned one.")
	}
}

// addRiskSigns adds the risk, with the rules from the last one that matched, and rules that could
// not be evaluated.
func (h *HeldCall) addRiskSigns(highest bool) {
	q := &h.Request
	var reasons, matched, failed []string
	for _, c := range slices.Backward(h.Risk) {
		switch {
		case c.Failed != "":
			failed = append(failed, c.Rule+": "+c.Failed)
		case c.Matched:
			rule := fmt.Sprintf("%s (%s, score %d)", c.Rule, c.Mode, c.Score)
			if reasons = append(reasons, c.Reason); len(reasons) > 1 && c.Reason != "" {
				rule += ": " + c.Reason
			}
			matched = append(matched, rule)
		}
	}
	switch {
	case len(matched) > 0:
		kind := SignRisk
		if highest {
			kind = SignDanger
		}
		h.Signs = append(h.Signs, Sign{kind, strings.TrimSuffix(q.riskText()+": "+reasons[0], ": "), "By " + strings.Join(matched, "; ")})
	case highest:
		h.Signs = append(h.Signs, Sign{SignDanger, q.riskText(), ""})
	case q.RiskMode != "" && len(failed) == 0:
		h.Usual = append(h.Usual, Sign{SignUsual, "No risk rule matched: " + q.riskText() + ".", ""})
	}
	if len(failed) > 0 {
		h.Signs = append(h.Signs, Sign{SignUnknown, "A risk rule could not be evaluated, which counts as more risk.", strings.Join(failed, "; ")})
	}
}

// maxPlaces bounds the places that a sign names.
const maxPlaces = 3

// hiddenPlaces names the places with characters that do not show as themselves.
func (h *HeldCall) hiddenPlaces() (places []string) {
	q, asked := &h.Request, ""
	if row := h.Question(); row.Name == "Question" { // otherwise the arguments say the same
		asked = row.Value
	}
	for _, name := range []Row{
		{"the requester's name", q.Requester()}, {"the person's name", q.Person()}, {"the task", q.Task},
		{"the server's name", q.Server}, {"the tool's name", q.Tool}, {"the question", asked},
	} {
		if visible.Lines(name.Value) != name.Value {
			places = append(places, name.Name)
		}
	}
	for i := range h.Arguments.Values {
		a := &h.Arguments.Values[i]
		if visible.Text(a.Pointer) != a.Pointer || visible.Lines(a.Text) != a.Text {
			places = append(places, visible.Clip(a.Name(), maxWords))
		}
	}
	if a := &h.Arguments; a.More && visible.Lines(a.Raw) != a.Raw { // also behind the listed ones
		places = append(places, "the JSON of the arguments")
	}
	return places
}

// blankPlaces names the arguments with so many blank lines in a row that what follows them may be
// off the screen.
func (h *HeldCall) blankPlaces() (places []string) {
	for i := range h.Arguments.Values {
		if a := &h.Arguments.Values[i]; hasGap(a.Text) {
			places = append(places, visible.Clip(a.Name(), maxWords))
		}
	}
	return places
}

// mixedPlaces names the words with letters of two alphabets in the call's names and arguments.
func (h *HeldCall) mixedPlaces() (places []string) {
	q := &h.Request
	texts := []string{q.Requester(), q.Person(), q.Task, q.Env, q.Server, q.Tool}
	for i := range h.Arguments.Values {
		a := &h.Arguments.Values[i]
		texts = append(texts, a.Name(), a.Text)
	}
	for _, text := range texts {
		if word, letter := mixedWord(text); word != "" {
			places = append(places, fmt.Sprintf("%s (U+%04X)", visible.Clip(word, maxWords), letter))
		}
	}
	return places
}

// mixedWord returns the first word with Latin letters and with letters of an alphabet that has similar
// ones, and the first of these.
func mixedWord(text string) (word string, letter rune) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }) {
		latin, similar := false, rune(0)
		for _, r := range word {
			latin = latin || unicode.Is(unicode.Latin, r)
			if similar == 0 && isSimilar(r) {
				similar = r
			}
		}
		if latin && similar != 0 {
			return word, similar
		}
	}
	return "", 0
}

// isSimilar reports whether a letter may look like a Latin one. Greek letters of units do not.
func isSimilar(r rune) bool {
	return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee) && !strings.ContainsRune("μΩπ", r)
}

// maxBlank bounds the blank lines in a row that are usual.
const maxBlank = 5

func hasGap(text string) bool {
	blank := 0
	for line := range strings.Lines(text) {
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		if blank > maxBlank {
			return true
		}
	}
	return false
}

// joinPlaces writes the first places.
func joinPlaces(places []string) string {
	if n := len(places) - maxPlaces; n > 0 {
		places = append(places[:maxPlaces], fmt.Sprintf("%d more places", n))
	}
	return strings.Join(places, ", ")
}

// BoundRows describes for people what an approval binds: every field of [states.Binding], and its
// digest.
func (h *HeldCall) BoundRows() []Row {
	q, b := &h.Request, &h.Bound
	pin, schema := "the tool is not pinned", ""
	if b.Pin != "" {
		pin = string(b.Pin)
	}
	if b.Schema != "" {
		schema = string(b.Schema) + ", the operator's, in place of the inputSchema"
	}
	votes := fmt.Sprintf("%d of %s", b.Quorum, cmp.Or(strings.Join(b.Approvers, " or "), "any approver"))
	return filledRows([]Row{
		{"Binding", string(q.Binding)}, {"Run", b.Run}, {"Requester", policy.FullName(b.Actor, q.Display)},
		{"On behalf of", policy.FullName(b.OnBehalfOf, q.OnBehalfOfDisplay)}, {"Runs as", h.accountText()}, {"Environment", b.Env},
		{"Server", b.Server}, {"Connection", string(b.Connection)}, {"Tool", b.Tool}, {"Definition", string(b.Definition)},
		{"Pin", pin}, {"Schema", schema}, {"Arguments", string(b.Arguments)}, {"Origins", string(b.Origins)},
		{"Risk", fmt.Sprintf("%s, score %d", b.Mode, b.Score)}, {"Risk rules", riskRulesText(b.Risk)},
		{"Policy", b.Policy}, {"Condition", b.Condition}, {"Votes", votes}, {"Expires", b.Expires},
		{"Sign-in", signInText(b.Fresh)}, {"Kind of request", b.Kind}, {"Client's session", b.Session},
	})
}

// accountText describes the account with which the call is made.
func (h *HeldCall) accountText() string {
	a := h.Bound.Account
	if a == nil {
		return ""
	}
	since := ", whose connection has ended: "
	if h.Connected != "" {
		since = ", connected on " + h.Connected + ": "
	}
	text := cmp.Or(a.Label, "an account without a name") + since + a.Connection
	if a.Issuer != "" {
		text += ", issued by " + a.Issuer
	}
	if len(a.Scopes) > 0 {
		text += ", scopes " + strings.Join(a.Scopes, " ")
	}
	return text
}

func riskRulesText(rules []states.BoundRisk) string {
	var all []string
	for _, r := range rules {
		text := fmt.Sprintf("%s: %s, score %d", r.Rule, r.Mode, r.Score)
		if !r.Matched {
			text += ", without effect because it could not be evaluated"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// signInText describes the greatest age of the approver's sign-in, in milliseconds.
func signInText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("votes count only in the console, within %s after signing in", time.Duration(ms)*time.Millisecond)
}
