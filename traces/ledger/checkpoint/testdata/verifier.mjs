// A second verifier of pgfsm's records. It was written from docs/reference/record-format.md and
// docs/reference/trace-format.md alone, and needs nothing but Node.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { must } from "./json.mjs";
import { LOG_KEY, WITNESS_KEY, verifierKey, verifyCheckpoint, verifyConsistency, verifyExport, verifyProof } from "./log.mjs";
import { readMachine, verifyTrace } from "./trace.mjs";

const HELP = `verifier.mjs verifies records of pgfsm without pgfsm. It needs Node 20 or later, and no package.

  node verifier.mjs export EXPORT... [--checkpoint FILE] [--key KEY]... [--witness-key KEY]...
  node verifier.mjs checkpoint FILE... --key KEY... [--witness-key KEY]...
  node verifier.mjs consistency (CHECKPOINT PROOF)... --key KEY... [--witness-key KEY]...
  node verifier.mjs proof (TRACE PROOF)... --key KEY... [--witness-key KEY]... [--machine PAGE]
  node verifier.mjs trace TRACE... [--head DIGEST] [--machine PAGE]
  node verifier.mjs -

KEY is a verifier key, or a file with one. PAGE is docs/internals/machine.md: with it, the states of a trace are compared with
the table of transitions. With "-", the verifier reads such commands from standard input, one a line, with spaces between
the arguments, and answers each with a line of JSON.

It prints one line for each intact record, and exits with 0. At the first fault it prints the place, what is wrong, and, for a
fault in the log, the rule of docs/reference/record-format.md. Then it exits with 1.

Examples:

  pgfsm ledger checkpoint -o signed
  pgfsm ledger export > export.jsonl
  node verifier.mjs export export.jsonl --checkpoint signed --key log.pub

  node verifier.mjs checkpoint signed --key log.pub --witness-key witness.pub

  pgfsm ledger trace RUN -o run.json
  pgfsm ledger prove RUN --checkpoint signed -o run.tlog-proof
  node verifier.mjs proof run.json run.tlog-proof --key log.pub --machine docs/internals/machine.md

  node verifier.mjs trace run.json --head sha256:...
`;

function main([command, ...args]) {
  if (command === undefined || command === "--help" || args.includes("--help")) return HELP.trimEnd();
  const files = [], options = { checkpoint: [], key: [], "witness-key": [], head: [], machine: [] };
  while (args.length > 0) {
    const arg = args.shift();
    if (!arg.startsWith("--")) {
      files.push(arg);
      continue;
    }
    must(arg.slice(2) in options && args.length > 0, arg, "an unknown option, or one without its value (--help shows all)");
    options[arg.slice(2)].push(args.shift());
  }
  const logKeys = options.key.map((key) => verifierKey(key, LOG_KEY));
  const witnessKeys = options["witness-key"].map((key) => verifierKey(key, WITNESS_KEY));
  const traceOptions = { head: options.head[0], machine: options.machine[0] && readMachine(options.machine[0]) };
  const checkpoint = options.checkpoint[0] && verifyCheckpoint(readFileSync(options.checkpoint[0]), logKeys, witnessKeys);
  const verify = {
    export: (log) => verifyExport(log, checkpoint, logKeys),
    checkpoint: (note) => {
      must(logKeys.length > 0, "checkpoint", "no key of the log is given");
      const { origin, size } = verifyCheckpoint(note, logKeys, witnessKeys);
      return `a checkpoint of ${size} entries of ${origin}`;
    },
    consistency: (old, proof) => verifyConsistency(old, proof, logKeys, witnessKeys),
    proof: (trace, proof) => verifyProof(trace, proof, logKeys, witnessKeys, traceOptions),
    trace: (trace) => `the trace is intact; its head is ${verifyTrace(trace, traceOptions).trace.get("head")}`,
  }[command];
  must(verify && files.length >= verify.length && files.length % verify.length === 0, String(command), "not a command with its files (--help shows all)");
  const results = [];
  while (files.length > 0) {
    const some = files.splice(0, verify.length);
    try {
      results.push(`${some[0]}: ${verify(...some.map((file) => readFileSync(file)))}`);
    } catch (err) {
      throw new Error(`${some.at(-1)}: ${err.message}`);
    }
  }
  return results.join("\n");
}

// answer returns whether the files of a command are intact, and what to print.
function answer(args) {
  try {
    return { intact: true, text: main(args) };
  } catch (err) {
    return { intact: false, text: err.message };
  }
}

if (process.argv[2] === "-") {
  for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(line.split(" "))));
} else {
  const { intact, text } = answer(process.argv.slice(2));
  console.log(text);
  process.exitCode = intact ? 0 : 1;
}
