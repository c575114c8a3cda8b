package present

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pgfsm/policy/origin"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// An Origin says where one value of a call's arguments comes from.
type Origin struct {
	At     string `json:"at"`            // JSON pointer in the arguments
	From   string `json:"from"`          // for people; empty: the value needs no origin
	Name   bool   `json:"name,omitzero"` // it is about the name of that member
	Origin string `json:"origin"`        // request, trusted, own or none
	Role   string `json:"role,omitzero"`
}

// nowhere is what people read about a value that was not found.
const nowhere = "nowhere in this session"

// readOrigins describes where the arguments of a call come from; nil if that was not read.
func readOrigins(r ledger.Reader, o *states.Origins) (all []Origin, err error) {
	if o == nil {
		return nil, nil
	}
	all = make([]Origin, len(o.Leaves))
	for i := range o.Leaves {
		leaf := &o.Leaves[i]
		all[i] = Origin{At: leaf.At, Name: leaf.Name, Origin: leaf.Origin, Role: leaf.Role}
		if all[i].From, err = originText(r, leaf); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// originText describes for people where a value comes from.
func originText(r ledger.Reader, leaf *origin.Leaf) (text string, err error) {
	source, err := strconv.ParseInt(leaf.Source, 10, 64)
	switch {
	case leaf.Origin == origin.None && leaf.Exempt:
		return "", nil
	case leaf.Origin == origin.None:
		return nowhere, nil
	case err != nil:
		return "", fmt.Errorf("the source of %s: %w", leaf.At, err)
	}
	e, err := firstEvent(r, source)
	pruned := errors.Is(err, ledger.ErrNotFound)
	if err != nil && !pruned {
		return "", err
	}
	switch {
	case pruned:
		text = fmt.Sprintf("entry %d, which was pruned", source)
	case leaf.Origin == origin.Request:
		prompt := valueAt(e.Payload, "/text")
		start := min(leaf.Start, len(prompt))
		first := utf8.RuneCountInString(prompt[:start]) + 1
		last := first + utf8.RuneCountInString(prompt[start:min(max(leaf.End, start), len(prompt))]) - 1
		text = fmt.Sprintf("the request, characters %d to %d (entry %d)", first, last, source)
	default:
		q, err := r.Run(e.RunID)
		if err != nil {
			return "", err
		}
		text = fmt.Sprintf("%s on %s, run %s", q.Tool, q.Server, ledger.ShortID(q.RunID))
		if leaf.Place != "" {
			text += ", " + leaf.Place
		}
		if leaf.Origin == origin.Own {
			text = "made by " + text
		}
	}
	if leaf.Form != "" {
		text += ", in another form"
	}
	return text, nil
}

// AddOrigins adds to each argument where it comes from.
func (a *Arguments) AddOrigins(origins []Origin) {
	anyRole := slices.ContainsFunc(origins, func(o Origin) bool { return o.Role != "" })
	for i := range a.Values {
		v := &a.Values[i]
		for k := range origins {
			o := &origins[k]
			from := o.From
			switch {
			case v.Change == Gone || from == "":
				continue
			case o.Name && (v.Pointer == o.At || strings.HasPrefix(v.Pointer, o.At+"/")):
				from = "its name: " + from
			case o.Name || v.Pointer != o.At:
				continue
			}
			if v.From != "" {
				from = v.From + "; " + from
			}
			v.From = from
			v.Nowhere = v.Nowhere || o.Origin == origin.None &&
				(o.Role == origin.Target || o.Role == origin.Amount || !anyRole)
		}
	}
}

// addOriginSigns names the arguments that stand nowhere in the session.
func (h *HeldCall) addOriginSigns(o *states.Origins) {
	if o == nil {
		return
	}
	if o.Failed != "" {
		h.Signs = append(h.Signs, Sign{SignOrigin, "Nothing was looked for in the session: " + o.Failed + ".", ""})
		return
	}
	var places []string
	for i := range h.Arguments.Values {
		if v := &h.Arguments.Values[i]; v.Nowhere {
			places = append(places, v.Name())
		}
	}
	if len(places) == 0 {
		return
	}
	detail := ""
	if o.Untrusted {
		detail = "The session has text that nobody trusts."
	}
	h.Signs = append(h.Signs, Sign{SignOrigin, "Nowhere in this session: " + joinPlaces(places) + ".", detail})
}
