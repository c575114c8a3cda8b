// Package fsm is a finite state machine as data: one table of places and rows is compiled once,
// proved, drawn, and then decides every transition.
//
// # The table
//
// A [Table] lists places in the order in which a subject passes them; that order is the rank, and
// the first place is the start. A [Row] says: from this state, on this trigger, if this guard has
// nothing against it, to that state, and why. Places, rows and guards carry a sentence for people;
// none may be empty. [Claims] say what the table is meant to guarantee about its effects.
//
// # Compiling
//
// [Compile] refuses a table with any mistake and reports all of them at once, each as a [*Mistake].
// It runs every proof of [Prove], so a table that breaks one of its own claims is an error at
// start-up and not at run time. What comes out is a [Machine]: immutable, safe for concurrent use,
// one for all subjects. The state lives with the subject.
//
// # Firing
//
// [Machine.Fire] asks github.com/qmuntal/stateless, which is configured from the rows and from
// nothing else. It returns the state that the trigger established, or a [*TransitionError] that
// says which guard refused and with what error. Anything unknown (a state, a trigger, the zero
// Machine) is refused; nothing is created by looking it up.
//
// # Proofs and pictures
//
// [Prove], [SVG] and [DOT] read the [Spec]: the table without its functions. All of them
// give the same bytes for the same Spec. Package fsmtest makes the broken copies of a table that
// its test must see refused, and a report for documentation.
//
// The package is pure: no clock, no randomness, no files, no network.
package fsm

// State names what has been established so far, as a past participle: lower-case letters, digits
// and underscores, beginning with a letter.
type State string

// Trigger names what moves a subject on, as an imperative, written like a [State].
type Trigger string

// Guard is the condition of a row. Allow gets the subject and returns nil if the row may be taken,
// else the reason why not; it must be pure. A guard without Allow is a mistake in the table, never
// a free pass.
type Guard[S any] struct {
	Name, Why string
	Allow     func(S) error
}

// Place is a state with the sentence that says what it establishes. Its position in the table is
// its rank. A terminal place has no way out.
type Place struct {
	State       State  `json:"state"`
	Established string `json:"established"`
	Terminal    bool   `json:"terminal"`
}

// Row is one transition.
type Row[S any] struct {
	From  State
	On    Trigger
	Guard Guard[S]
	To    State
	Why   string
}

// Claims holds the promises of a table about itself; [Prove] turns each into a proof.
type Claims struct {
	// Effects are what the machine guards: no path has two of them.
	Effects []Effect `json:"effects"`
	// Between are places that certain paths cannot avoid.
	Between []Between `json:"between"`
	// Exits are triggers that certain states must offer.
	Exits []Exits `json:"exits"`
	// SoleEntry are states that exactly one row enters.
	SoleEntry []State `json:"sole_entry"`
}

// An Effect is something that must happen at most once, and only after certain states.
type Effect struct {
	// State is the state in which the effect is under way.
	State State `json:"state"`
	// On is the only trigger that enters State.
	On Trigger `json:"on"`
	// Dominators lie on every path from the start to State.
	Dominators []State `json:"dominators"`
}

// Between claims that every path From→To passes Via.
type Between struct {
	From State `json:"from"`
	To   State `json:"to"`
	Via  State `json:"via"`
}

// Exits claims that each of States leaves by each trigger in On.
type Exits struct {
	States []State   `json:"states"`
	On     []Trigger `json:"on"`
}

// Table is the whole machine. S is the subject that guards look at.
type Table[S any] struct {
	Name   string
	Places []Place
	Rows   []Row[S]
	Claims Claims
}
