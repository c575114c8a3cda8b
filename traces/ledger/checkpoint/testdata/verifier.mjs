// A second verifier of pgfsm's records. It was written from docs/reference/record-format.md and
// docs/reference/trace-format.md alone, and needs nothing but Node. It prints one line, and exits
// with 0 if the record is intact, or with 1 after it has named the first wrong place.
//
//   node verifier.mjs export EXPORT [--checkpoint FILE] [--key KEY]... [--witness-key KEY]...
//   node verifier.mjs checkpoint FILE --key KEY... [--witness-key KEY]...
//   node verifier.mjs proof TRACE PROOF --key KEY... [--witness-key KEY]... [--machine PAGE]
//   node verifier.mjs trace TRACE [--head DIGEST] [--machine PAGE]
//
// KEY is a verifier key, or a file with one. PAGE is docs/internals/machine.md.

import { readFileSync } from "node:fs";
import { must } from "./json.mjs";
import { LOG_KEY, WITNESS_KEY, verifierKey, verifyCheckpoint, verifyExport, verifyProof } from "./log.mjs";
import { readMachine, verifyTrace } from "./trace.mjs";

function main([command, ...args]) {
  const files = [], options = { checkpoint: [], key: [], "witness-key": [], head: [], machine: [] };
  while (args.length > 0) {
    const arg = args.shift();
    if (arg.startsWith("--")) (options[arg.slice(2)] ?? must(false, arg, "an unknown option")).push(args.shift());
    else files.push(readFileSync(arg));
  }
  const logKeys = options.key.map((key) => verifierKey(key, LOG_KEY));
  const witnessKeys = options["witness-key"].map((key) => verifierKey(key, WITNESS_KEY));
  const traceOptions = { head: options.head[0], machine: options.machine[0] && readMachine(options.machine[0]) };
  switch (command) {
  case "export":
    return verifyExport(files[0], options.checkpoint[0] && verifyCheckpoint(readFileSync(options.checkpoint[0]), logKeys, witnessKeys));
  case "checkpoint": {
    const { origin, size } = verifyCheckpoint(files[0], logKeys, witnessKeys);
    return `a checkpoint of ${size} entries of ${origin}`;
  }
  case "proof":
    return verifyProof(files[0], files[1], logKeys, witnessKeys, traceOptions);
  case "trace":
    return `the trace is intact; its head is ${verifyTrace(files[0], traceOptions).trace.get("head")}`;
  }
  throw new Error(`${command}: an unknown command`);
}

try {
  console.log(main(process.argv.slice(2)));
} catch (err) {
  console.error(err.message);
  process.exit(1);
}
