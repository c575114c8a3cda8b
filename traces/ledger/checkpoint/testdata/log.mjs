// The log: its tree, its checkpoints, its entries, its exports, and proofs of a run.

import { createPublicKey, verify as ed25519 } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { base64, canonical, count, digest, digestBytes, hashOf, isDigest, isString, isTime, members, must, parse, sha256, shaped, utf8, without } from "./json.mjs";
import { verifyTrace } from "./trace.mjs";

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
  must(index < size, "proof: index", `the tree has only ${size} entries`);
  let left = 1;
  while (left * 2 < size) left *= 2;
  if (size === 1) {
    must(hashes.length === 0, "proof", "has too many hashes");
    return hash;
  }
  must(hashes.length > 0, "proof", "has too few hashes");
  const sibling = hashes.at(-1);
  if (index < left) return innerHash(rootOfProof(hash, index, left, hashes.slice(0, -1)), sibling);
  return innerHash(sibling, rootOfProof(hash, index - left, size - left, hashes.slice(0, -1)));
}

// ---- Checkpoints: signed notes with a log's signature (0x01) and cosignatures (0x04)

export const LOG_KEY = 1, WITNESS_KEY = 4;

// verifierKey reads NAME+ID+BASE64 (c2sp.org/signed-note, verifier keys), or the file that has it.
export function verifierKey(arg, type) {
  const text = (existsSync(arg) ? readFileSync(arg, "utf8") : arg).trim();
  const found = /^([^\s+]+)\+([0-9a-f]{8})\+(.*)$/u.exec(text);
  must(found, `key ${arg}`, "not a verifier key");
  const [, name, id, encoded] = found;
  const key = base64(encoded, `key ${name}`);
  must(key.length === 33 && key[0] === type, `key ${name}`, `not an Ed25519 key of type ${type}`);
  must(sha256(name, "\n", key).toString("hex", 0, 4) === id, `key ${name}`, "its id is not that of name and key");
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key.subarray(1)]);
  return { name, id, type, key: createPublicKey({ key: der, format: "der", type: "spki" }) };
}

// verifyCheckpoint returns the tree head of a checkpoint. One log key must have signed it, and every witness must have cosigned it.
// Without keys the head is only read.
export function verifyCheckpoint(bytes, logKeys, witnessKeys) {
  const place = "checkpoint";
  const note = utf8(bytes, place);
  must(!/[\u0000-\u0009\u000b-\u001f]/.test(note), place, "has a control character");
  const end = note.lastIndexOf("\n\n") + 1;
  must(end > 0 && note.endsWith("\n"), place, "not a signed note");
  const text = note.slice(0, end);
  const head = /^([^\n]+)\n(0|[1-9][0-9]{0,15})\n([^\n]+)\n$/.exec(text);
  must(head, place, "its text has not exactly the three lines origin, size and root");
  const signedBy = new Set();
  for (const line of note.slice(end + 1, -1).split("\n")) {
    const found = /^\u2014 ([^\s+]+) ([^\s]+)$/u.exec(line);
    must(found, place, `"${line}" is not a signature`);
    const signature = base64(found[2], `${place}: signature of ${found[1]}`);
    must(signature.length > 4, place, `the signature of ${found[1]} is too short`);
    for (const key of [...logKeys, ...witnessKeys]) {
      if (key.name !== found[1] || key.id !== signature.toString("hex", 0, 4)) continue;
      must(signatureHolds(key, text, signature.subarray(4)), place, `the signature of ${key.name} is wrong`);
      signedBy.add(key);
    }
  }
  for (const key of logKeys) must(key.name === head[1], place, `its origin is ${head[1]}, the key is of ${key.name}`);
  must(logKeys.length === 0 || logKeys.some((key) => signedBy.has(key)), place, "no key of the log signed it");
  for (const key of witnessKeys) must(signedBy.has(key), place, `${key.name} did not cosign it`);
  return { origin: head[1], size: Number(head[2]), root: hashOf(head[3], `${place}: root`) };
}

function signatureHolds({ key, type }, text, signature) {
  if (type === LOG_KEY) return signature.length === 64 && ed25519(null, Buffer.from(text), key, signature);
  if (signature.length !== 72) return false;
  const time = signature.readBigUInt64BE();
  return ed25519(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), key, signature.subarray(8));
}

// ---- Entries and events of the log

const EVENTS = {
  "log.created": "former? origin",
  "request.created": "build bundle call env format machine request",
  "call.reserved": "inputs steps",
  "risk.scored": "mode rules? score",
  "decision.made": "bundle? code? condition? gate outcome policy reason",
  "approval.requested": "approvers binding expires inputs last quorum steps",
  "approval.approved": "binding decides display? groups? key reason token",
  "approval.denied": "binding decides display? groups? key reason token",
  "approval.expired": "binding expires",
  "run.claimed": "",
  "proxy.sent": "inputs permit steps trace?",
  "tool.result": "bytes",
  "run.ended": "head inputs outcome steps",
  "outcome.delivered": "how",
  "mcp.passed": "direction method on_behalf_of? params server token",
  "bundle.activated": "actor? build bundle cause changed? previous?",
  "token.created": "expires id name role secret",
  "token.revoked": "id",
  "identity.blocked": "issuer subject",
  "identity.unblocked": "issuer subject",
  "access.refused": "endpoint scope",
  "key.added": "key",
  "key.removed": "key",
  "ledger.pruned": "before entries runs tasks?",
  "ledger.closed": "target",
  "ledger.continued": "",
};

const MAX_INLINE = 4096;
const isReference = (v) => isString(v) && v.startsWith("@") && isDigest(v.slice(1));

// Runs follows the entries of every run: n counts, and prev is the hash of the run's entry before.
// A run may begin in the middle if the first entries of the log are not known.
class Runs {
  constructor(complete) {
    this.complete = complete;
    this.last = new Map();
  }

  add(entry, hash, place) {
    const run = entry.get("run"), n = count(entry.get("n"), `${place}: n`), prev = entry.get("prev");
    if (run === "") {
      must(n === 0 && prev === "", place, "an entry without a run has n or prev");
      return;
    }
    const before = this.last.get(run) ?? (this.complete || n === 0 ? { n: -1, hash: "" } : undefined);
    if (before) {
      must(n === before.n + 1, place, `n is ${n}, but the entries of the run before are ${before.n + 1}`);
      must(prev === before.hash, place, "prev is not the hash of the run's entry before");
    }
    this.last.set(run, { n, hash });
  }
}

// eventsOf checks an entry and returns its events. blob returns the text of a blob, or undefined.
function eventsOf(entry, blob, place) {
  members(entry, "at by events n prev run", place);
  must(isTime(entry.get("at")), place, "at is not a time");
  must(isString(entry.get("by")) && isString(entry.get("run")) && isString(entry.get("prev")), place, "by, run or prev is not a string");
  let events = entry.get("events");
  if (isString(events)) {
    must(isReference(events), place, "events is not a list or a reference");
    const text = blob("blob", events.slice(1));
    must(text !== undefined, place, `the blob ${events.slice(1)} of its events is missing`);
    must(Buffer.byteLength(text) > MAX_INLINE, place, "small events stand in a blob");
    events = parse(text, place);
  } else {
    must(Buffer.byteLength(canonical(events)) <= MAX_INLINE, place, "large events do not stand in a blob");
  }
  must(Array.isArray(events) && events.length > 0, place, "it has no events");
  for (const event of events) {
    must(event instanceof Map && isString(event.get("type")), place, "an event has no type");
    const type = event.get("type");
    must(type in EVENTS, place, `the event ${type} is unknown`);
    members(event, `type ${EVENTS[type]}`, `${place}: ${type}`);
    if (type === "log.created" && event.has("former")) formerHolds(event, `${place}: former`);
    if (type === "bundle.activated") activationHolds(event, `${place}: ${type}`);
  }
  must(entry.get("run") !== "" || events.length === 1, place, "it belongs to no run, and has several events");
  return events;
}

// formerHolds checks the checkpoints of a log that lost entries. Nobody needs to know its keys: they are only read.
function formerHolds(event, place) {
  const former = event.get("former");
  members(former, "common? lost", place);
  const [lost, common] = ["lost", "common"].map((name) => former.has(name) && verifyCheckpoint(Buffer.from(former.get(name)), [], []));
  must(lost.origin !== event.get("origin"), place, "it is the log itself");
  if (common) must(common.origin === lost.origin && common.size < lost.size, place, "common is of another log, or not smaller than lost");
}

function activationHolds(event, place) {
  const cause = event.get("cause");
  must(["start", "signal", "watch", "reload"].includes(cause), place, "cause is unknown");
  must((cause === "reload") === event.has("actor"), place, "actor does not belong to the cause");
  must((cause === "start") === !event.has("previous"), place, "previous does not belong to the cause");
}

// ---- Exports

export function verifyExport(bytes, checkpoint) {
  const lines = utf8(bytes, "export").split("\n");
  must(lines.pop() === "", "export", "its last line does not end");
  const blobs = new Map(), hashes = [], missing = new Set(), pruned = new Set();
  let first, runs, lastAt = "", closed;
  lines.forEach((line, number) => shaped(`line ${number + 1}`, () => {
    const place = `line ${number + 1}`;
    const value = parse(line, place);
    must(canonical(value) === line, place, "not canonical JSON");
    if (value instanceof Map && value.has("blob")) {
      members(value, "blob kind text", place);
      const [name, kind, text] = ["blob", "kind", "text"].map((m) => value.get(m));
      must(["blob", "bundle"].includes(kind) && isString(text), place, "not a blob");
      must(digestBytes(kind, text) === name, place, "the text is not that of the digest");
      must(!blobs.has(`${kind} ${name}`), place, "the blob was written before");
      must(canonical(parse(text, place)) === text, place, "the text is not canonical JSON");
      blobs.set(`${kind} ${name}`, text);
      return;
    }
    members(value, "entry? hash index", place);
    const index = count(value.get("index"), `${place}: index`), hash = value.get("hash");
    first ??= index;
    runs ??= new Runs(first === 0);
    must(index === first + hashes.length, place, `index ${first + hashes.length} is missing`);
    hashes.push(hashOf(hash, `${place}: hash`));
    if (!value.has("entry")) {
      missing.add(index);
      return;
    }
    const entry = value.get("entry"), entryPlace = `${place}: entry ${index}`;
    must(leafHash(canonical(entry)).toString("base64") === hash, entryPlace, "hash is not the leaf hash of entry");
    const blob = (kind, name) => blobs.get(`${kind} ${name}`);
    const events = eventsOf(entry, blob, entryPlace);
    must(entry.get("at") >= lastAt, entryPlace, "it is earlier than the entry before");
    lastAt = entry.get("at");
    if (index > first) {
      const continues = events[0].get("type") === "ledger.continued";
      must(continues === (closed === index - 1), entryPlace, "ledger.continued is the only entry that may follow ledger.closed, and follows nothing else");
    }
    if (events[0].get("type") === "ledger.closed") closed = index;
    runs.add(entry, hash, entryPlace);
    for (const event of events) {
      referencesOf(event).forEach(([kind, name]) => must(blob(kind, name), entryPlace, `the ${kind} ${name} is missing`));
      if (event.get("type") !== "ledger.pruned") continue;
      for (const range of event.get("entries")) {
        members(range, "first last", entryPlace);
        const [from, to] = ["first", "last"].map((m) => count(range.get(m), entryPlace));
        must(from <= to && to < index, entryPlace, "not a range of entries before");
        for (let i = Math.max(from, first); i <= to; i++) pruned.add(i);
      }
    }
    if (index === 0) must(events[0].get("type") === "log.created", entryPlace, "entry 0 is not log.created");
    if (index === 0 && checkpoint) must(events[0].get("origin") === checkpoint.origin, entryPlace, "the checkpoint is of another log");
  }));
  for (const index of missing) must(pruned.has(index), `entry ${index}`, "it is left out, but no prune names it");
  if (!checkpoint) return `${hashes.length} entries are intact; without a checkpoint, nobody knows whether the last ones are missing`;
  must(first === 0 || checkpoint.size === 0, "export", "it does not begin with entry 0, so no checkpoint can be compared");
  must(hashes.length >= checkpoint.size, "export", `entry ${hashes.length} is missing; the checkpoint has ${checkpoint.size} entries`);
  must(treeRoot(hashes.slice(0, checkpoint.size)).equals(checkpoint.root), "export", `the first ${checkpoint.size} entries are not those of the checkpoint`);
  return `${hashes.length} entries are intact; the first ${checkpoint.size} are those of the checkpoint`;
}

// referencesOf lists the blobs to which an event refers, as kind and digest.
function referencesOf(event) {
  const found = [];
  if (["request.created", "bundle.activated"].includes(event.get("type"))) found.push(["bundle", event.get("bundle")]);
  for (const input of event.get("inputs") ?? []) {
    if (isString(input.get("event"))) found.push(["blob", input.get("event").slice(1)]);
  }
  return found;
}

// ---- Proofs (c2sp.org/tlog-proof)

export function verifyProof(traceBytes, proofBytes, logKeys, witnessKeys, options) {
  must(logKeys.length > 0, "proof", "no key of the log is given");
  const text = utf8(proofBytes, "proof");
  const found = /^c2sp\.org\/tlog-proof@v1\nextra ([^\n]*)\nindex (0|[1-9][0-9]{0,15})\n((?:[^\n]+\n)*)\n([^]*)$/.exec(text);
  must(found, "proof", "not a c2sp.org/tlog-proof@v1 with extra data");
  const hashes = found[3].split("\n").slice(0, -1).map((line, i) => hashOf(line, `proof: hash ${i}`));
  const checkpoint = verifyCheckpoint(Buffer.from(found[4]), logKeys, witnessKeys);
  const lines = utf8(base64(found[1], "proof: extra"), "proof: extra").split("\n");
  must(lines.pop() === "", "proof: extra", "its last line does not end");

  const { trace, last } = verifyTrace(traceBytes, options);
  const runs = new Runs(true), events = [];
  let hash;
  for (let i = 0; i < lines.length; i++) {
    const place = `proof: line ${i + 1} of extra`;
    const entry = parse(lines[i], place);
    must(canonical(entry) === lines[i], place, "not canonical JSON");
    hash = leafHash(lines[i]);
    const blob = (kind, name) => {
      const content = lines[++i] ?? "";
      must(digestBytes(kind, content) === name, `proof: line ${i + 1} of extra`, "not the events of the line before");
      return content;
    };
    events.push(...eventsOf(entry, blob, place));
    must(entry.get("run") === trace.get("run_id"), place, "an entry of another run");
    runs.add(entry, hash.toString("base64"), place);
  }
  must(hash, "proof: extra", "it has no entry");
  must(rootOfProof(hash, Number(found[2]), checkpoint.size, hashes).equals(checkpoint.root), "proof", "its hashes do not lead to the checkpoint's root");
  const [ended, again] = events.filter((event) => event.get("type") === "run.ended");
  const held = events.findLast((event) => event.get("type") === "approval.requested");
  must(!again, "proof", "the run ended twice");
  if (ended) must(ended.get("head") === trace.get("head"), "proof", "run.ended records the head of another trace");
  else must(held && trace.get("outcome").get("state") === "pending" && held.get("last") === last, "proof", "no entry records this trace");
  return `entry ${found[2]} of ${checkpoint.origin} records the trace of run ${trace.get("run_id")}`;
}
