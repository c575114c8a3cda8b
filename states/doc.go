// Package states is the machine of pgfsm: its table, one file for each stage, the run and its
// facts, the loop, and the ports (interfaces for effects).
//
// # How a run moves
//
// A [Run] is one request on its way through [Table]. A state says what the run has established. The
// work in a state is its stage, which is two pure functions. Want returns a [Command] for the
// effect that the stage needs next, or none. Judge takes the resulting [Event], and returns a
// [Fact] and a trigger. [Machine.Advance] is the loop: want, do, judge, fire, append.
//
// The machine fires a trigger only if the guard of its row agrees. Guards see only facts: they
// check that the verdict is allow, and that its digests are those of the earlier facts. If a stage
// fires the wrong trigger or judged something else, the machine stops the run with an
// [*fsm.TransitionError].
//
// # One function for effects
//
// An [EffectHandler] performs a command and returns its event. [Live] calls the ports; the replayer
// of package traces reads a trace. The machine, the stages and the loop are the same code for both.
//
// # Failures
//
// A failed effect is an event, [EffectFailed], so that failed runs replay, too. Go errors mean that
// the loop cannot continue: the record cannot be written, a replay diverged, or the machine refused
// a transition.
package states
