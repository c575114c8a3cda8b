package api

import (
	"fmt"
	"strings"
	"time"

	"pgfsm/fsm"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/states"
)

// A way shows the steps of a run in their phases, and the time that they took.
type way struct {
	Track  present.Track
	Phases []wayPhase
	Ahead  []wayStep // states that were not reached
	Spent  []spent
	Total  string // time from the first step to the last; empty without a step
}

// A wayPhase is a phase with the steps that led to its states.
type wayPhase struct {
	Name  string
	Steps []wayStep
}

// A wayStep is one step, and the time until the next one.
type wayStep struct {
	present.Step
	Class present.TrackClass
	Icon  string
	Why   string // what the state establishes, if the step has no reason
	Sends bool   // the call leaves pgfsm with this step
	Took  string // empty for the last step
	Long  bool   // a second or more
	Wait  bool   // the run is held there: the votes belong to the step
}

// A spent is the time of a phase, with a share of the picture's width.
type spent struct {
	Class, Label, Took string
	X, Width           int
}

// Sizes of the picture of the times.
const (
	spentWidth = 700
	minSpent   = 4
)

// newWay returns the way of a run. The spec says what each state establishes.
func newWay(run *present.Run, steps []present.Step, spec *fsm.Spec) (w way) {
	w.Track = present.NewTrack(run)
	classes := make(map[string]present.TrackClass)
	names := make(map[string]string)
	for _, phase := range w.Track {
		for _, cell := range phase.Cells {
			classes[string(cell.State)], names[string(cell.State)] = cell.Class, phase.Name
			if cell.Class == present.TrackAhead {
				step := present.Step{To: string(cell.State)}
				w.Ahead = append(w.Ahead, wayStep{Step: step, Class: cell.Class, Why: established(spec, cell.State)})
			}
		}
	}

	took := make(map[string]time.Duration)
	for i := range steps {
		s := wayStep{Step: steps[i], Sends: steps[i].To == string(states.Dispatched), Wait: steps[i].To == string(states.Pending)}
		phase, onWay := names[s.To]
		if s.Class = classes[s.To]; !onWay || s.Class == present.TrackEnded {
			s.Class = present.TrackReached
		}
		if !onWay {
			s.Class = present.TrackEnded
			if phase = lastName(w.Phases); s.To == string(states.NeedsInfo) {
				s.Class = present.TrackAsked
			}
		}
		if s.Verdict.Reason == "" {
			s.Why = established(spec, fsm.State(s.To))
		}
		s.Icon = stepIcon(&s)
		if i+1 < len(steps) {
			d := timeBetween(s.At, steps[i+1].At)
			s.Took, s.Long = durationText(d), d >= time.Second
			took[phase] += d
		}
		if n := len(w.Phases); n == 0 || w.Phases[n-1].Name != phase {
			w.Phases = append(w.Phases, wayPhase{Name: phase})
		}
		last := &w.Phases[len(w.Phases)-1]
		last.Steps = append(last.Steps, s)
	}
	if n := len(steps); n > 1 {
		total := timeBetween(steps[0].At, steps[n-1].At)
		w.Total = durationText(total)
		w.addSpent(took, total)
	}
	return w
}

func lastName(phases []wayPhase) string {
	if len(phases) == 0 {
		return states.Phases(states.KindCall)[0].Name
	}
	return phases[len(phases)-1].Name
}

func stepIcon(s *wayStep) string {
	switch {
	case s.Class == present.TrackEnded:
		return "cross"
	case s.Class == present.TrackWaits, s.Wait, s.Verdict.Outcome == policy.Hold:
		return "clock"
	case s.Class == present.TrackAsked:
		return "ask"
	case s.Sends:
		return "arrow"
	}
	return "check"
}

// addSpent divides the picture's width by the time of each phase.
func (w *way) addSpent(took map[string]time.Duration, total time.Duration) {
	if total <= 0 {
		return
	}
	classes := map[string]string{"Gates": "ok", "Approval": "wait", "Call": "info", "Permit": "info", "Result": "ok", "Report": "ok"}
	x := 0
	for _, phase := range w.Phases {
		width := max(minSpent, int(took[phase.Name].Seconds()/total.Seconds()*spentWidth))
		w.Spent = append(w.Spent, spent{classes[phase.Name], strings.ToLower(phase.Name), durationText(took[phase.Name]), x, width})
		x += width + 2
	}
}

// SpentWidth is the width of the picture of the times.
func (w *way) SpentWidth() int {
	last := w.Spent[len(w.Spent)-1]
	return last.X + last.Width
}

// established returns what a state establishes, in the words of the machine's table.
func established(spec *fsm.Spec, state fsm.State) string {
	for _, p := range spec.Places {
		if p.State == state {
			return p.Established
		}
	}
	return ""
}

// timeBetween returns the time between two recorded times; 0 if there is none.
func timeBetween(from, to string) time.Duration {
	a, err := time.Parse(policy.TimeForm, from)
	b, toErr := time.Parse(policy.TimeForm, to)
	if err != nil || toErr != nil {
		return 0
	}
	return max(b.Sub(a), 0)
}

// durationText writes a time that a step took.
func durationText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "< 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
