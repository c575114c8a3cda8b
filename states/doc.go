// Package states is the machine of pgfsm: its table, one file for each stage, the run and what is known of it, the
// loop, and the ports to the world.
//
// # How a run moves
//
// A [Run] is one request on its way through [Table]. A state is what has been established; the work done while in a
// state is its stage, and a stage is two pure functions. Want says which effect the stage needs next, as a [Command],
// or none. Judge takes the [Event] that came of it, establishes a [Fact] and names the trigger. [Machine.Advance] is
// the loop around them: want, do, judge, fire, append.
//
// The machine fires a trigger only if the guard of its row agrees, and guards look at facts alone: the verdict is
// allow, and the digests it was given for are those of the facts before it. A stage that fires the wrong trigger, or
// judged something else than what will run, is refused with an [*fsm.TransitionError].
//
// # One door to the world
//
// A [Door] turns a command into an event. [Live] calls the ports; the replayer of package traces reads a trace. The
// machine, the stages and the loop are the same code for both, and nothing asks which it is.
//
// # What breaks
//
// A broken effect is an event, [EffectFailed], judged like any other, so that failed runs replay too. Go errors mean
// that the machinery itself cannot go on: the record cannot be written, a replay diverged, the machine refused a
// transition.
package states
