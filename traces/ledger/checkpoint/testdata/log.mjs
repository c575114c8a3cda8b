// The log: its tree, its checkpoints, its entries, its exports, and proofs of a run.

import { createPublicKey, verify as ed25519 } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { base64, byDefault, canonical, count, digestBytes, hashOf, isDigest, isString, isTime, isUUID, Literal, members, must, parse, sha256, shaped, utf8 } from "./json.mjs";
import { RunRules, tasksHold } from "./runs.mjs";
import { REQUEST, credentialHolds, accountHolds, identityHolds, mcpSessionHolds, originsHold, sessionKey, verifyTrace } from "./trace.mjs";

// ---- Merkle tree (RFC 6962, section 2)

const leafHash = (leaf) => sha256(Buffer.of(0), leaf);
const innerHash = (left, right) => sha256(Buffer.of(1), left, right);

function treeRoot(hashes) {
  if (hashes.length === 0) return sha256("");
  if (hashes.length === 1) return hashes[0];
  let left = 1;
  while (left * 2 < hashes.length) left *= 2;
  return innerHash(treeRoot(hashes.slice(0, left)), treeRoot(hashes.slice(left)));
}

// rootOfProof returns the root to which a leaf's hash, its index and the hashes of a proof lead.
function rootOfProof(hash, index, size, hashes) {
  must(index < size, "proof: index", `the tree has only ${size} entries`, "R45");
  let left = 1;
  while (left * 2 < size) left *= 2;
  if (size === 1) {
    must(hashes.length === 0, "proof", "has too many hashes", "R45");
    return hash;
  }
  must(hashes.length > 0, "proof", "has too few hashes", "R45");
  const sibling = hashes.at(-1);
  if (index < left) return innerHash(rootOfProof(hash, index, left, hashes.slice(0, -1)), sibling);
  return innerHash(sibling, rootOfProof(hash, index - left, size - left, hashes.slice(0, -1)));
}

// growthHolds checks a consistency proof (RFC 9162, section 2.1.4.2).
function growthHolds(old, now, hashes, place) {
  const fail = (ok, problem) => must(ok, place, problem, "R49");
  fail(old.origin === now.origin && old.size <= now.size, "the later checkpoint is of another log, or has fewer entries");
  if (old.size === 0 || old.size === now.size) {
    fail(hashes.length === 0 && (old.size === 0 || old.root.equals(now.root)), "the first entries are others");
    return;
  }
  let node = old.size - 1, last = now.size - 1;
  const up = () => { node = Math.floor(node / 2); last = Math.floor(last / 2); };
  while (node % 2 === 1) up();
  const path = node === 0 ? [old.root, ...hashes] : [...hashes];
  fail(path.length > 0, "has too few hashes");
  let [first] = path, [second] = path;
  for (const hash of path.slice(1)) {
    fail(last > 0, "has too many hashes");
    if (node % 2 === 1 || node === last) {
      first = innerHash(hash, first);
      second = innerHash(hash, second);
      while (node % 2 === 0 && node !== 0) up();
    } else second = innerHash(second, hash);
    up();
  }
  fail(last === 0 && first.equals(old.root) && second.equals(now.root), "its hashes do not lead to both roots");
}

// verifyConsistency verifies that the log of the checkpoint in a proof contains the entries of an earlier checkpoint.
export function verifyConsistency(oldBytes, proofBytes, logKeys, witnessKeys) {
  must(logKeys.length > 0, "proof", "no key of the log is given", "R43");
  const old = verifyCheckpoint(oldBytes, logKeys, []), text = utf8(proofBytes, "proof");
  const found = /^old (0|[1-9][0-9]{0,15})\n((?:[^\n]+\n)*)\n([^]+)$/.exec(text);
  must(found, "proof", "it has not the form of c2sp.org/tlog-witness", "R49");
  const hashes = found[2].split("\n").slice(0, -1).map((line, i) => hashOf(line, `proof: hash ${i}`));
  const now = verifyCheckpoint(Buffer.from(found[3]), logKeys, witnessKeys);
  must(Number(found[1]) === old.size, "proof", `it is of ${found[1]} entries, and the earlier checkpoint has ${old.size}`, "R49");
  growthHolds(old, now, hashes, "proof");
  return `the first ${old.size} of ${now.size} entries of ${now.origin} are those of the earlier checkpoint`;
}

// ---- Checkpoints: signed notes with a log's signature (0x01) and cosignatures (0x04)

export const LOG_KEY = 1, WITNESS_KEY = 4;

// verifierKey reads NAME+ID+BASE64 (c2sp.org/signed-note, verifier keys), or the file that has it.
export function verifierKey(arg, type) {
  const text = (existsSync(arg) ? readFileSync(arg, "utf8") : arg).replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "");
  const [name, id, ...encoded] = text.split("+");
  must(isKeyName(name) && /^[0-9a-f]{8}$/.test(id) && encoded.length > 0, `key ${arg}`, "not a verifier key");
  const key = base64(encoded.join("+"), `key ${name}`);
  must(key.length === 33 && key[0] === type, `key ${name}`, `not an Ed25519 key of type ${type}`);
  must(sha256(name, "\n", key).toString("hex", 0, 4) === id, `key ${name}`, "its id is not that of name and key");
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key.subarray(1)]);
  return { name, id, type, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

const isKeyName = (name) => name !== "" && !/[\p{White_Space}+]/u.test(name);
const isOrigin = (origin) => isKeyName(origin) && !/\p{Cc}/u.test(origin) && Buffer.byteLength(origin) <= MAX_ORIGIN;

const MAX_ORIGIN = 255, MAX_SIGNATURES = 100, LAST_SECOND = 253402300799n;

// openNote reads a signed note, and returns its text and those of the keys that have signed it. Every signature of one of the keys
// must be valid.
function openNote(note, keys, place, rule) {
  must(!/[\u0000-\u0009\u000b-\u001f]/.test(note), place, "has a control character", rule("R40"));
  const end = note.lastIndexOf("\n\n") + 1;
  must(end > 0 && note.endsWith("\n"), place, "not a signed note", rule("R40"));
  const text = note.slice(0, end), lines = note.slice(end + 1, -1).split("\n"), signedBy = new Set();
  must(lines.length <= MAX_SIGNATURES, place, `has more than ${MAX_SIGNATURES} signatures`, rule("R42"));
  for (const line of lines) {
    const found = /^\u2014 ([^ ]+) ([^ ]+)$/u.exec(line);
    must(found && isKeyName(found[1]), place, `"${line}" is not a signature`, rule("R42"));
    const signature = base64(found[2], `${place}: signature of ${found[1]}`);
    must(signature.length > 4, place, `the signature of ${found[1]} is too short`, rule("R42"));
    for (const key of keys) {
      if (key.name !== found[1] || key.id !== signature.toString("hex", 0, 4)) continue;
      must(signatureHolds(key, text, signature.subarray(4)), place, `the signature of ${key.name} is wrong`, rule("R43"));
      signedBy.add(key);
    }
  }
  return { text, signedBy };
}

// verifyCheckpoint returns the tree head of a checkpoint. A log key with the origin's name must have signed it, and every
// witness must have cosigned it. Without keys the head is only read.
export function verifyCheckpoint(bytes, logKeys, witnessKeys) {
  const place = "checkpoint";
  const { text, signedBy } = openNote(utf8(bytes, place), [...logKeys, ...witnessKeys], place, (rule) => rule);
  const head = headOf(text, place);
  const ofLog = logKeys.filter((key) => key.name === head.origin);
  must(logKeys.length === 0 || ofLog.length > 0, place, `its origin is ${head.origin}, the key is of ${logKeys[0]?.name}`, "R43");
  must(logKeys.length === 0 || ofLog.some((key) => signedBy.has(key)), place, "no key of the log signed it", "R43");
  for (const key of witnessKeys) must(signedBy.has(key), place, `${key.name} did not cosign it`, "R44");
  return { ...head, verified: logKeys.length > 0 };
}

// headOf reads the text of a checkpoint.
function headOf(text, place) {
  const lines = text.split("\n"), [origin, size, root] = lines;
  must(lines.length === 4, place, "its text has not exactly the three lines origin, size and root", "R41");
  must(isOrigin(origin), place, "its origin is not a name of a log", "R41");
  must(/^(0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(Number(size)), place, "its size is not a number of entries", "R41");
  return { origin, size: Number(size), root: hashOf(root, `${place}: root`) };
}

function signatureHolds({ key, type }, text, signature) {
  if (type === LOG_KEY) return signature.length === 64 && ed25519(null, Buffer.from(text), key, signature);
  if (signature.length !== 72) return false;
  const time = signature.readBigUInt64BE();
  return time <= LAST_SECOND && ed25519(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), key, signature.subarray(8));
}

// ---- Entries and events of the log

// The events of each class, with their members.
const LOG_EVENTS = {
  "log.created": "origin",
  "command.started": "build bundle claim_within_ms? env events format issuers? machine may? retention_days? speakers?",
  "bundle.activated": "actor? build bundle cause changed? claim_within_ms? env events format issuers? machine may? previous? proved? retention_days? speakers?",
  "token.created": "expires id name role secret",
  "token.revoked": "id",
  "identity.blocked": "issuer subject",
  "identity.unblocked": "issuer subject",
  "connection.made": "account? client? id issuer? kind person resource scopes? server token?",
  "connection.ended": "id person reason server",
  "key.added": "key",
  "key.removed": "key",
  "ledger.pruned": "before? entries kind order? reason? runs tasks?",
  "ledger.closed": "target",
  "ledger.continued": "",
};
const RUN_EVENTS = {
  "request.created": "call gen request token?",
  "call.reserved": "after_ms? inputs steps",
  "risk.scored": "mode rules? score",
  "decision.made": "bundle? code? condition? gate outcome policy reason",
  "approval.requested": "after_ms? approvers binding expires inputs last quorum steps",
  "approval.approved": "binding credential? decides display? expires? groups? key reason token",
  "approval.denied": "binding credential? decides display? expires? groups? key reason token",
  "approval.expired": "binding expires",
  "run.claimed": "",
  "proxy.sent": "after_ms? inputs permit steps trace?",
  "tool.result": "bytes redacted?",
  "call.delegated": "after_ms? call? inputs permit steps",
  "call.reported": "arguments? failed? result?",
  "call.rewritten": "args? arguments",
  "call.unreported": "reason",
  "run.ended": "after_ms? head inputs outcome steps",
  "outcome.delivered": "how",
};
const SESSION_EVENTS = {
  "mcp.passed": "direction method on_behalf_of? params server token",
  "access.refused": "endpoint? scope? server? token?",
  "prompt.captured": "cut? prompt? session source? text token?",
  "report.late": "args? arguments? failed? result? run token?",
};
const CLASSES = { log: LOG_EVENTS, run: RUN_EVENTS, session: SESSION_EVENTS };
const EVENTS = { ...LOG_EVENTS, ...RUN_EVENTS, ...SESSION_EVENTS };

const isCount = (v) => v instanceof Literal && /^(0|[1-9][0-9]{0,15})$/.test(v.text), isTexts = (v) => Array.isArray(v) && v.every(isString);
const isTimeOrNever = (v) => v === "" || isTime(v), isMap = (v) => v instanceof Map;

// The forms of members that are no texts, or of a form of their own.
const FORMS = {
  bytes: isCount, claim_within_ms: isCount, gen: isCount, events: isCount, quorum: (v) => isCount(v) && v.text !== "0", retention_days: isCount, runs: isCount,
  score: (v) => v instanceof Literal && /^(0|-?[1-9][0-9]{0,15})$/.test(v.text),
  decides: (v) => typeof v === "boolean", cut: (v) => v === true, failed: (v) => v === true,
  approvers: isTexts, changed: isTexts, groups: isTexts, issuers: isTexts, proved: isTexts, rules: isTexts, scopes: isTexts, speakers: isTexts, steps: isTexts,
  after_ms: (v) => Array.isArray(v) && v.every(isCount), entries: Array.isArray, inputs: Array.isArray, tasks: Array.isArray,
  call: (v, event) => event.get("type") === "call.delegated" ? isString(v) : v === null || callHolds(v), outcome: (v) => isString(v) || outcomeIsWhole(v), request: requestIsWhole,
  args: isMap, credential: isMap, may: (v) => mayHolds(v), head: isDigest, last: isDigest, expires: isTimeOrNever,
  binding: (v, event) => event.get("type") === "approval.requested" ? isDigest(v) : isString(v),
};
const texts = (map, names) => names.split(" ").every((name) => isString(map.get(name)));
const callHolds = (v) => isMap(v) && isMap(v.get("args")) && isDigest(v.get("definition")) && texts(v, "server tool");

function mayHolds(may) {
  members(may, "administer? approve? audit?", "may");
  return may.size > 0 && [...may.values()].every((list) => isTexts(list) && list.length > 0);
}

function outcomeIsWhole(outcome) {
  const names = "code effect gate note reason state type";
  members(outcome, names, "outcome");
  return texts(outcome, names);
}

// requestIsWhole checks the members of a request; those of its parts are checked with its trace.
function requestIsWhole(request) {
  members(request, REQUEST, "request");
  if (request.has("account")) byDefault("R1", () => accountHolds(request.get("account"), "request: account"));
  if (request.has("identity")) byDefault("R11", () => identityHolds(request, "request: identity"));
  const isText = (v) => v === undefined || isString(v) || isMap(v); // see textBytes
  return texts(request, "actor kind") && isTime(request.get("at")) && ["round", "task", "text"].every((name) => isText(request.get(name)));
}

// The version of the list of events above.
const EVENTS_VERSION = "1";

const MAX_INLINE = 256;
const isReference = (v) => isString(v) && v.startsWith("@") && isDigest(v.slice(1));

// headerHolds checks the header of an entry on its own.
function headerHolds(header, place) {
  members(header, "at body class n prev types", place);
  const types = header.get("types"), cls = header.get("class"), prev = header.get("prev");
  must(isTime(header.get("at")), place, "at is not a time");
  hashOf(header.get("body"), `${place}: body`);
  must(Array.isArray(types) && types.length > 0, place, "it has no types");
  for (const type of types) {
    must(type in EVENTS, place, `the event ${type} is unknown`);
    must(type in (CLASSES[cls] ?? {}), place, `the event ${type} is not of the class ${cls}`, "R3");
  }
  const n = count(header.get("n"), `${place}: n`);
  if (n > 0) hashOf(prev, `${place}: prev`);
  else must(prev === "", place, "the first entry of a run, or one without a run, has prev", "R6");
  if (cls === "run") must(types.indexOf("request.created") === (n > 0 ? -1 : 0) && types.lastIndexOf("request.created") < 1, place,
    "request.created is the first event of a run, and no other one", "R10");
  else must(n === 0 && types.length === 1, place, "it belongs to no run, and has n or several events", "R3");
}

// eventsOf checks the body of an entry, and returns its events. blob returns the text of a blob, or undefined;
// without this function, the texts are not known.
function eventsOf(header, body, blob, place) {
  const digest = sha256(canonical(body)).toString("base64");
  must(digest === header.get("body"), place, "body of the header is not the SHA-256 of the body", "R2");
  members(body, "by events run? salt", place);
  must(isString(body.get("by")) && body.get("by") !== "", place, "by is not a name");
  must(base64(body.get("salt"), `${place}: salt`).length === 16, place, "salt has not 16 bytes");
  must(body.has("run") === (header.get("class") === "run"), place, "the class is not that of the body", "R3");
  if (body.has("run")) must(isUUID(body.get("run")), place, "run is not a run's id");
  const events = body.get("events"), types = header.get("types");
  must(Array.isArray(events) && events.length === types.length, place, "types are not those of the events", "R3");
  events.forEach((event, i) => {
    must(event instanceof Map && event.get("type") === types[i], place, "types are not those of the events", "R3");
    const eventPlace = `${place}: ${types[i]}`;
    members(event, `type ${EVENTS[types[i]]}`, eventPlace);
    formsHold(event, EVENTS[types[i]].split(" "), eventPlace);
    if (event.has("events")) generationHolds(event, blob, eventPlace);
    if (event.has("steps")) stepsHold(event, blob, eventPlace);
    if (types[i] === "bundle.activated") activationHolds(event, eventPlace);
    if (event.get("call") instanceof Map) members(event.get("call"), "args definition server tool", `${eventPlace}: call`);
  });
  return events;
}

// formsHold checks the type of each member, and that no optional one is empty.
function formsHold(event, names, place) {
  for (const [name, value] of event) {
    const form = FORMS[name] ?? isString;
    if (name === "credential") byDefault("R17", () => credentialHolds(value, place));
    must(form(value, event), place, `${name} has another form`, "R1");
    must(!names.includes(`${name}?`) || (value !== "" && value.length !== 0 && value.text !== "0"), place, `${name} is empty, and not left out`, "R1");
  }
}

function generationHolds(event, blob, place) {
  const version = canonical(event.get("events"));
  must(version === EVENTS_VERSION, place, `the list of events has the version ${version}; this verifier knows ${EVENTS_VERSION}`, "R7");
  must(!blob || blob("bundle", event.get("bundle")) !== undefined, place, `the bundle ${event.get("bundle")} is missing`, "R8");
}

// stepsHold checks the triggers, the times and the inputs of steps.
function stepsHold(event, blob, place) {
  const steps = event.get("steps"), times = event.get("after_ms") ?? [];
  must(Array.isArray(steps) && steps.every(isString), place, "steps are not triggers", "R9");
  must(times.length <= steps.length, place, "after_ms has more times than there are steps", "R9");
  times.forEach((time) => count(time, `${place}: after_ms`));
  must(!event.has("after_ms") || times.length > 0 && times.at(-1).text !== "0", place, "after_ms ends with a zero, or is empty", "R9");
  let before = -1;
  for (const input of event.get("inputs")) {
    members(input, "age_s? event step", `${place}: inputs`);
    const step = count(input.get("step"), `${place}: inputs: step`);
    must(step > before && step < steps.length, `${place}: inputs`, "step does not increase, or is not one of the steps", "R9");
    before = step;
    inputHolds(input, blob, `${place}: inputs: step ${step}`);
  }
}

// inputHolds checks that a listing of tools is in a blob if it is large, and without its age.
function inputHolds(input, blob, place) {
  let event = input.get("event");
  if (event instanceof Map) {
    must(isString(event.get("happened")) && event.get("happened") !== "" && !input.has("age_s"), place, "not an event, or it has age_s and is in no blob", "R9");
    must(event.get("happened") !== "tools_listed" || Buffer.byteLength(canonical(event)) <= MAX_INLINE, place, "a large listing is in no blob", "R9");
    return;
  }
  must(isReference(event), place, "neither an event nor a reference", "R9");
  if (input.has("age_s")) must(count(input.get("age_s"), `${place}: age_s`) > 0, place, "age_s is zero, and not left out", "R9");
  if (!blob) return;
  const text = blob("blob", event.slice(1));
  must(text !== undefined, place, `the blob ${event.slice(1)} is missing`, "R8");
  event = parse(text, place);
  const bytes = Buffer.byteLength(text) + (input.has("age_s") ? input.get("age_s").text.length - 1 : 0);
  must(isString(event.get("happened")) && bytes > MAX_INLINE, place, "the blob is not a large event", "R9");
  if (event.has("kept")) must(canonical(event.get("kept").get("age_s")) === "0", place, "kept.age_s of the blob is not 0", "R9");
  else must(!input.has("age_s"), place, "it has age_s, and the listing was not kept", "R9");
}

function activationHolds(event, place) {
  const cause = event.get("cause");
  must(["start", "signal", "watch", "reload"].includes(cause), place, "cause is unknown", "R28");
  must((cause === "reload") === event.has("actor"), place, "actor does not belong to the cause", "R28");
  must((cause === "start") === !event.has("previous"), place, "previous does not belong to the cause", "R28");
}

// Runs follows the entries of every run: n counts, and prev is the hash of the run's entry before. The body of an entry may
// have been pruned, so its run is found by prev. A run may begin in the middle if the first entries of the log are not known.
class Runs {
  constructor(complete) {
    this.complete = complete;
    this.byId = new Map();
    this.byLast = new Map(); // by the leaf hash of the run's last entry
    this.hashes = new Set();
  }

  // add returns the run of an entry. body is undefined if it was pruned.
  add(header, body, hash, index, place) {
    const n = count(header.get("n"), `${place}: n`), prev = header.get("prev"), id = body?.get("run");
    let run = this.byId.get(id) ?? this.byLast.get(prev);
    if (!run) {
      must(n === 0 || !this.complete && !this.hashes.has(prev), place, `n is ${n}, and prev is not the hash of the run's entry before`, "R6");
      run = { id, entries: [] };
    } else {
      must(n === run.n + 1, place, `n is ${n}, but the run has ${run.n + 1} entries before`, "R6");
      must(prev === run.last, place, "prev is not the hash of the run's entry before", "R6");
      must(id === undefined || run.id === undefined || run.id === id, place, "prev is the hash of an entry of another run", "R6");
      this.byLast.delete(prev);
    }
    if (id !== undefined) this.byId.set(id, run);
    this.byLast.set(hash, run);
    this.hashes.add(hash);
    must(!run.ended || !header.get("types").some((type) => type !== "outcome.delivered"), place, "its run has ended before", "R10");
    run.id ??= id;
    run.n = n;
    run.last = hash;
    run.ended ||= header.get("types").includes("run.ended");
    run.entries.push(index);
    return run;
  }
}

// ---- Exports

// An Export verifies the lines of an export one after the other.
class Export {
  constructor(checkpoint, trusted) {
    this.checkpoint = checkpoint;
    this.trusted = trusted; // keys of the log that the reader trusts
    this.ordering = []; // those of them that the log has had
    this.blobs = new Map(); // texts by kind and digest
    this.bundles = new Map(); // the contents of bundles that runs have
    this.unused = new Set(); // blobs that no entry has referred to
    this.hashes = [];
    this.entries = []; // what later entries need of each entry, from the first index on
    this.lastAt = "";
    this.earlier = new Map(); // how many prompts and calls of sessions, and calls of requesters, there were
    this.tasks = new Map(); // calls of tasks that prunes carry over
    this.keys = new Map(); // those of the log, by their text
    this.removedKeys = new Set();
  }

  addLine(line, place) {
    const value = parse(line, place);
    must(canonical(value) === line, place, "not canonical JSON", "R1");
    if (value instanceof Map && value.has("blob")) this.addBlob(value, place);
    else this.addEntry(value, place);
  }

  addBlob(value, place) {
    members(value, "blob kind text", place);
    const [name, kind, text] = ["blob", "kind", "text"].map((member) => value.get(member));
    must(["blob", "bundle"].includes(kind) && isString(text), place, "not a blob", "R1");
    must(digestBytes(kind, text) === name, place, "the text is not that of the digest", "R2");
    must(!this.blobs.has(`${kind} ${name}`), place, "the blob was written before", "R8");
    must(canonical(parse(text, place)) === text, place, "the text is not canonical JSON", "R8");
    this.blobs.set(`${kind} ${name}`, text);
    this.unused.add(`${kind} ${name}`);
  }

  addEntry(value, line) {
    members(value, "body? hash header index", line);
    const [header, body, hash] = ["header", "body", "hash"].map((member) => value.get(member));
    const index = count(value.get("index"), `${line}: index`), place = `${line}: entry ${index}`;
    this.first ??= index;
    this.runs ??= new Runs(this.first === 0);
    this.rules ??= new RunRules(this.first === 0);
    must(index === this.first + this.hashes.length, line, `index ${this.first + this.hashes.length} is missing`, "R4");
    this.hashes.push(hashOf(hash, `${line}: hash`));
    must(leafHash(canonical(header)).toString("base64") === hash, place, "hash is not the leaf hash of header", "R2");
    if (body !== undefined) must(body.has("run") === (header.get("class") === "run"), place, "the class is not that of the body", "R3");
    headerHolds(header, place);
    const [at, cls, types] = ["at", "class", "types"].map((member) => header.get(member));
    must(at >= this.lastAt, place, "it is earlier than the entry before", "R4");
    this.lastAt = at;
    must(body !== undefined || cls !== "log", place, "it is left out, and no prune removes entries of the class log", "R31");
    this.followsClosed(index, types[0], place);
    const entry = { at, cls, types, n: count(header.get("n"), place), by: body?.get("by"), left: body === undefined };
    this.entries.push(entry);
    this.pruned ||= entry.left;
    const events = body === undefined ? [] : eventsOf(header, body, (kind, name) => this.blob(kind, name), place);
    if (cls === "run") entry.run = this.runs.add(header, body, hash, index, place);
    if (cls === "run" && entry.left) this.rules.forget(entry.run.id);
    if (entry.left && types.includes("call.unreported")) this.rules.prunedSilent++;
    for (const event of events) {
      const eventPlace = `${place}: ${event.get("type")}`;
      if (cls !== "run") {
        this.rules.addLogEvent(event, entry.by, at, eventPlace);
        this.addLogEvent(event, index, at, place);
        if (event.get("type") === "prompt.captured") {
          entry.session = { actor: entry.by, key: event.get("session") };
          this.countEarlier(["prompt", entry.by, event.get("session")]);
        }
        if (event.has("events")) entry.generation = event;
        continue;
      }
      const generation = event.has("gen") ? this.generationOf(event.get("gen"), entry.by, index, place) : undefined;
      const bundle = generation && this.contentOf(generation.get("bundle"));
      this.rules.addRunEvent(body.get("run"), event, entry.by, at, eventPlace, generation, bundle);
      const request = event.get("request");
      if (isMap(request)) {
        mcpSessionHolds(request, bundle);
        const own = { actor: request.get("actor"), person: request.get("identity")?.get("on_behalf_of"), key: sessionKey(request), task: request.get("task") };
        own.counted = { prompts: ["prompt", own.actor, own.key], runs: ["session", own.actor, own.person, own.key, own.key ?? own.task], earlier: ["requester", own.actor, own.person] };
        own.before = Object.fromEntries(Object.entries(own.counted).map(([name, of]) => [name, this.earlier.get(JSON.stringify(of)) ?? 0]));
        entry.session = own;
      }
      const { counted } = this.entries[entry.run.entries[0] - this.first]?.session ?? {};
      if (counted && ["proxy.sent", "call.delegated"].includes(event.get("type"))) [counted.runs, counted.earlier].forEach((of) => this.countEarlier(of));
      for (const input of event.get("inputs") ?? []) this.originsHold(input.get("event"), entry.run.entries[0], eventPlace);
    }
    must((index === 0) === (types[0] === "log.created"), place, "log.created is the event of entry 0, and of no other", "R5");
    if (index === 0) this.origin = events[0].get("origin");
    if (index === 0 && this.checkpoint) must(events[0].get("origin") === this.checkpoint.origin, place, "the checkpoint is of another log", "R39");
  }

  blob(kind, name) {
    this.unused.delete(`${kind} ${name}`);
    return this.blobs.get(`${kind} ${name}`);
  }

  // contentOf returns the content of a bundle.
  contentOf(digest) {
    if (!this.bundles.has(digest)) this.bundles.set(digest, parse(this.blobs.get(`bundle ${digest}`), `bundle ${digest}`));
    return this.bundles.get(digest);
  }

  // countEarlier counts a prompt or a call.
  countEarlier(of) {
    const key = JSON.stringify(of);
    this.earlier.set(key, (this.earlier.get(key) ?? 0) + 1);
  }

  // originsHold checks that an event of a run says how much was before the run, and names only entries of the run's session there.
  originsHold(event, first, place) {
    if (!isMap(event) || event.get("happened") !== "history_read" || !event.has("origins")) return;
    const origins = event.get("origins"), own = this.entries[first - this.first].session;
    if (!own) return; // the export begins later
    byDefault("R50", () => shaped(place, () => originsHold(origins, `${place}: origins`)));
    must(own.key !== undefined || own.task !== undefined, place, "origins of arguments are found in no session", "R50");
    if (this.first === 0 && !origins.has("failed")) {
      for (const [name, known] of Object.entries(own.before)) {
        const said = Number(origins.get(name)?.text ?? 0), isAsked = said > 0 || name !== "earlier";
        must(!isAsked || said === known || this.pruned && said > known, place, `${known} ${name} were before it, and it says ${said}`, "R50");
      }
    }
    for (const leaf of origins.get("leaves").filter((leaf) => leaf.has("source"))) {
      const index = Number(leaf.get("source")), type = leaf.get("origin") === "request" ? "prompt.captured" : "request.created";
      if (index < this.first) continue;
      const entry = index < first ? this.entries[index - this.first] : undefined, session = entry?.session;
      const isOwn = entry?.left || session && session.actor === own.actor && (type === "prompt.captured" || session.person === own.person) && session.key === own.key && (own.key !== undefined || session.task === own.task);
      must(entry?.types[0] === type && isOwn, place, `entry ${index} is none of its session before it`, "R50");
    }
  }

  followsClosed(index, type, place) {
    const before = this.entries.at(-1)?.types[0];
    if (before !== undefined) must((type === "ledger.continued") === (before === "ledger.closed"), place,
      "ledger.continued is the only entry that may follow ledger.closed, and follows nothing else", "R29");
  }

  generationOf(member, by, index, place) {
    const gen = count(member, `${place}: gen`);
    if (gen < this.first) return undefined;
    const entry = this.entries[gen - this.first];
    must(gen < index && ["bundle.activated", "command.started"].includes(entry.types[0]), place, `gen is ${gen}, which is no earlier generation`, "R7");
    must(entry.by === by, place, `gen is ${gen}, which is of another process`, "R7");
    return entry.generation;
  }

  // addLogEvent follows the keys, with which prunes are compared.
  addLogEvent(event, index, at, place) {
    switch (event.get("type")) {
      case "key.added": {
        const key = verifierKey(event.get("key"), LOG_KEY);
        must(this.origin === undefined || key.name === this.origin, place, "the key is of another log", "R26");
        must(!this.removedKeys.has(event.get("key")) && !this.keys.has(event.get("key")), place, "the key was added before", "R26");
        this.keys.set(event.get("key"), key);
        if (this.trusted.some(({ name, id }) => name === key.name && id === key.id)) this.ordering = this.trusted;
        break;
      }
      case "key.removed":
        must(this.keys.delete(event.get("key")) || this.first > 0, place, "the key was not one of the log", "R26");
        this.removedKeys.add(event.get("key"));
        break;
      case "ledger.pruned":
        this.pruneAllowed(event, at, place);
        this.addPrune(event, index, place);
    }
  }

  // pruneAllowed checks the kind, the time and the order of a prune.
  pruneAllowed(event, at, place) {
    const kind = event.get("kind"), before = event.get("before");
    must(["retention", "erasure"].includes(kind), place, `there is no kind ${kind}`, "R34");
    const reasons = ["not_needed", "consent", "objection", "unlawful", "obligation", "mistake"], reason = event.get("reason");
    must(kind === "erasure" ? reasons.includes(reason) : reason === undefined, place, `${reason} is no reason of this prune`, "R35");
    if (kind === "erasure") must(before === undefined && event.has("order"), place, "an erasure has before, or no order", "R35");
    else {
      must(isTime(before) && before <= at, place, "before is not a time, or later than the prune", "R34");
      const settings = this.rules.settings, days = settings?.has("retention_days") ? count(settings.get("retention_days"), place) : 0;
      const kept = new Date(at).getTime() - days * 24 * 60 * 60 * 1000;
      must(days === 0 || new Date(before).getTime() <= kept, place, `it removes what the retention of ${days} days keeps`, "R34");
    }
    const keys = this.trusted.length > 0 ? this.ordering : [...this.keys.values()];
    must(event.has("order") || keys.length === 0, place, "the log has a key, and the prune has no order", "R36");
    // An export that begins later may lack the key.
    if (event.has("order") && (this.first === 0 || keys.length > 0)) this.orderHolds(event, keys, place);
  }

  orderHolds(event, keys, place) {
    const { text, signedBy } = openNote(event.get("order"), keys, `${place}: order`, () => "R37");
    must(signedBy.size > 0, place, "no key of the log has signed its order", "R37");
    const [heading, origin, kind, subject, rest, ...more] = text.split("\n");
    must(heading === "pgfsm prune order v1" && rest === "" && more.length === 0, place, "its order has not the four lines", "R37");
    must(this.origin === undefined || origin === this.origin, place, "its order is of another log", "R37");
    must(kind === event.get("kind"), place, "its order is of another kind", "R37");
    if (kind === "retention") return must(subject === event.get("before"), place, "its order has another time", "R37");
    const ordered = this.orderedRanges(subject, place);
    for (const range of event.get("entries")) {
      const [from, to] = ["first", "last"].map((member) => count(range.get(member), place));
      must(ordered.some(([first, last]) => first <= from && to <= last), place, `its order does not name entries ${from} to ${to}`, "R37");
    }
  }

  // orderedRanges reads the ranges of an order, in order and without leading zeros.
  orderedRanges(subject, place) {
    let next = 0;
    return subject.split(",").map((text) => {
      const found = /^(0|[1-9]\d*)-(0|[1-9]\d*)$/.exec(text), [first, last] = found ? found.slice(1).map(Number) : [];
      must(found && next <= first && first <= last && Number.isSafeInteger(last), place, `its order has the range ${text}`, "R37");
      next = last + 2; // two ranges side by side are one
      return [first, last];
    });
  }

  // addPrune checks the ranges of a prune against the headers of what it removed.
  addPrune(event, index, place) {
    const before = event.get("before"), ranges = event.get("entries"), runs = new Set();
    for (const task of event.get("tasks") ?? []) members(task, "calls server task tool", `${place}: tasks`);
    this.tasks = tasksHold(event.get("tasks") ?? [], this.tasks, place);
    must(ranges.length > 0, place, "it removes nothing", "R30");
    let next = 0, beginnings = 0;
    for (const range of ranges) {
      members(range, "first last", place);
      const [from, to] = ["first", "last"].map((member) => count(range.get(member), place));
      must(next <= from && from <= to && to < index, place, `${from} to ${to} is not the next range of entries before`, "R30");
      next = to + 2; // two ranges side by side are one
      for (let i = Math.max(from, this.first); i <= to; i++) {
        const entry = this.entries[i - this.first];
        must(entry.prunedBy === undefined, place, `entry ${i} was pruned before`, "R30");
        must(entry.cls !== "log", place, `entry ${i} is of the class log`, "R31");
        must(before === undefined || entry.at < before, place, `entry ${i} was added at ${entry.at}, not before ${before}`, "R34");
        entry.prunedBy = index;
        if (entry.cls !== "run") continue;
        runs.add(entry.run);
        if (entry.n === 0) beginnings++;
      }
    }
    for (const run of runs) {
      must(run.ended, place, `the run of entry ${run.entries[0]} has not ended`, "R32");
      const kept = run.entries.find((i) => this.entries[i - this.first].prunedBy === undefined);
      must(kept === undefined, place, `entry ${kept} is of a run that was pruned, and is not named`, "R32");
    }
    const named = count(event.get("runs"), `${place}: runs`), known = count(ranges[0].get("first"), place) >= this.first;
    must(known ? named === beginnings : named >= beginnings, place, `runs is ${named}, but ${beginnings} runs were pruned`, "R33");
  }

  // finish compares what is left out with the prunes, and the tree with the checkpoint.
  finish() {
    this.entries.forEach((entry, i) => must(!entry.left || entry.prunedBy !== undefined, `entry ${this.first + i}`,
      "it is left out, but no prune names it", "R38"));
    for (const name of this.unused) must(false, `the ${name}`, "no entry refers to it", "R8");
    const { checkpoint, hashes } = this;
    if (!checkpoint) return `${hashes.length} entries are intact; without a checkpoint, nobody knows whether the last ones are missing`;
    must(this.first === 0 || checkpoint.size === 0, "export", "it does not begin with entry 0, so no checkpoint can be compared");
    must(hashes.length >= checkpoint.size, "export", `entry ${hashes.length} is missing; the checkpoint has ${checkpoint.size} entries`, "R39");
    const root = treeRoot(hashes.slice(0, checkpoint.size));
    must(root.equals(checkpoint.root), "export", `the first ${checkpoint.size} entries are not those of the checkpoint`, "R39");
    return `${hashes.length} entries are intact; the first ${checkpoint.size} are those of the checkpoint${checkpoint.verified ? "" : ", whose signature was not verified"}`;
  }
}

export function verifyExport(bytes, checkpoint, trusted) {
  const lines = utf8(bytes, "export").split("\n"), log = new Export(checkpoint, trusted);
  must(lines.pop() === "", "export", "its last line does not end", "R1");
  lines.forEach((line, i) => byDefault("R1", () => shaped(`line ${i + 1}`, () => log.addLine(line, `line ${i + 1}`))));
  return log.finish();
}

// ---- Proofs (c2sp.org/tlog-proof)

export function verifyProof(traceBytes, proofBytes, logKeys, witnessKeys, options) {
  must(logKeys.length > 0, "proof", "no key of the log is given", "R43");
  const text = utf8(proofBytes, "proof");
  const found = /^c2sp\.org\/tlog-proof@v1\nextra ([^\n]*)\nindex (0|[1-9][0-9]{0,15})\n((?:[^\n]+\n)*)\n([^]*)$/.exec(text);
  must(found, "proof", "not a c2sp.org/tlog-proof@v1 with extra data", "R46");
  const hashes = found[3].split("\n").slice(0, -1).map((line, i) => hashOf(line, `proof: hash ${i}`));
  const checkpoint = verifyCheckpoint(Buffer.from(found[4]), logKeys, witnessKeys);
  const lines = utf8(base64(found[1], "proof: extra"), "proof: extra").split("\n");
  must(lines.pop() === "" && lines.length > 0 && lines.length % 2 === 0, "proof: extra", "it has not two lines for each entry", "R46");

  const { trace, last } = verifyTrace(traceBytes, options);
  const runs = new Runs(true), events = [];
  let hash;
  for (let i = 0; i < lines.length; i += 2) {
    const place = `proof: line ${i + 1} of extra`;
    const [header, body] = lines.slice(i, i + 2).map((line) => parse(line, place));
    must(canonical(header) === lines[i] && canonical(body) === lines[i + 1], place, "not canonical JSON", "R46");
    headerHolds(header, place);
    events.push(...eventsOf(header, body, undefined, place));
    must(body.get("run") === trace.get("run_id"), place, "an entry of another run", "R47");
    hash = leafHash(lines[i]);
    runs.add(header, body, hash.toString("base64"), i / 2, place);
  }
  const root = rootOfProof(hash, Number(found[2]), checkpoint.size, hashes);
  must(root.equals(checkpoint.root), "proof", "its hashes do not lead to the checkpoint's root", "R45");
  const [ended, again] = events.filter((event) => event.get("type") === "run.ended");
  const held = events.findLast((event) => event.get("type") === "approval.requested");
  must(!again, "proof", "the run ended twice", "R48");
  if (ended) must(ended.get("head") === trace.get("head"), "proof", "run.ended records the head of another trace", "R48");
  else must(held && trace.get("outcome").get("state") === "pending" && held.get("last") === last, "proof", "no entry records this trace", "R48");
  return `entry ${found[2]} of ${checkpoint.origin} records the trace of run ${trace.get("run_id")}`;
}
