// Package runner is the application: it takes requests through the machine of package states, with
// real servers and a real model, and records what happens. The commands run, call, resume and serve
// and the evaluations of whole runs use one [Runner]. Package runner/setup makes the [Options] from
// a configuration.
//
// # One request
//
// [Runner.Run] takes the question of a person or the plan of an operator; [ConfiguredRunner.Call] takes a
// tools/call that an agent sent to the gateway. Both make a [states.Run] and pass it to
// [Runner.Advance]; the evaluation of attacks passes its own runs, with ports that reach no server.
// Advance
//
//  1. begins a record (record.go): in the ledger, or nowhere (serve.record: none);
//  2. lets [states.Machine.Advance] move the run until it ends or is held. The machine decides; it
//     asks for effects through the ports (agent_ports.go, ports.go, completion.go) and hands each
//     transition to the record, which makes a held or dispatched run durable before the machine goes
//     on;
//  3. ends the record, and returns how the run ended and the head of its trace.
//
// If the record cannot be written, the run stops where it is and nothing more is called: the
// outcome is record_failed.
//
// # A held call
//
// A run that a policy holds is in the ledger, and no process owns it until one claims it. Approvers
// decide in the ledger. Then [Runner.Resume] (the command resume), [Runner.Await] (run --wait) or a
// [Worker] (serve, approvals serve) claims the run, executes its record again, looks at the world
// once more and makes at most one call. The ledger lets only one of them do so.
//
// An agent learns the outcome in one of three ways, and once only (hold.go, attach.go, task.go):
// its call is held open, it repeats the identical call, which attaches to the held run, or it polls
// the task that it got as the answer.
//
// # The service
//
// A [Service] (service.go) is what pgfsm serve and pgfsm approvals serve run: the gateway for
// agents, the approvals API for people, a worker and the sender of web hooks, over one Runner.
//
// # Who owns what
//
//   - One goroutine owns a run, its ports and its record.
//   - The caller of [New] owns the bundle, the sessions with servers and the ledger, and closes them after [Runner.Wait].
//   - A server's listing is interpreted once for all runs (listing.go); runs share it and do not change it.
//   - The [Worker] owns the runs that it claimed, and lets them end when it is stopped.
package runner
