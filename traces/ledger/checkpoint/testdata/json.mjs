// JSON: strict, canonical with number literals as they are, and the digests over that form.

import { createHash } from "node:crypto";

// must throws an error with the place and the problem unless the condition holds. rule is the number of the rule in
// record-format.md that is broken.
export function must(condition, place, problem, rule) {
  if (!condition) throw new Error(`${place}: ${problem}${rule ? ` (record-format.md, ${rule})` : ""}`);
}

// byDefault runs a check. An error that names no rule breaks the given one.
export function byDefault(rule, check) {
  try {
    return check();
  } catch (err) {
    if (!err.message.includes("(record-format.md, ")) err.message += ` (record-format.md, ${rule})`;
    throw err;
  }
}

// shaped runs a check, and reports a value of another type than expected as a problem of the place.
export function shaped(place, check) {
  try {
    return check();
  } catch (err) {
    if (err instanceof TypeError) must(false, place, "a value is missing or of another type");
    throw err;
  }
}

export const sha256 = (...parts) => parts.reduce((h, p) => h.update(p), createHash("sha256")).digest();

export class Literal {
  constructor(text) { this.text = text; }
}

export function utf8(bytes, place) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(`${place}: the bytes are not UTF-8`);
  }
}

// parse returns objects as Map, numbers as Literal, and everything else as JavaScript's own value.
export function parse(text, place) {
  let at = 0;
  const fail = (problem) => must(false, place, `${problem} at character ${at}`);
  const token = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found?.[0];
  };
  const space = () => token(/[ \t\n\r]*/y);
  const string = () => {
    const raw = token(/"(?:[^"\\\u0000-\u001f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y);
    if (raw === undefined) fail("no string");
    const s = JSON.parse(raw);
    if (/\p{Surrogate}/u.test(s)) fail("a lone surrogate");
    return s;
  };
  const value = () => {
    space();
    const next = text[at];
    let v;
    if (next === "{") v = object();
    else if (next === "[") v = array();
    else if (next === '"') v = string();
    else {
      const word = token(/true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
      if (word === undefined) fail("no value");
      v = { true: true, false: false, null: null }[word];
      if (v === undefined) v = new Literal(word);
    }
    space();
    return v;
  };
  const list = (close, item) => {
    at++;
    space();
    if (text[at] === close) { at++; return; }
    for (;;) {
      item();
      if (text[at] === close) { at++; return; }
      if (text[at++] !== ",") fail(`no "," or "${close}"`);
    }
  };
  const object = () => {
    const members = new Map();
    list("}", () => {
      space();
      const name = string();
      if (members.has(name)) fail(`a second member "${name}"`);
      space();
      if (text[at++] !== ":") fail('no ":"');
      members.set(name, value());
    });
    return members;
  };
  const array = () => {
    const items = [];
    list("]", () => items.push(value()));
    return items;
  };
  const v = value();
  if (at !== text.length) fail("text after the value");
  return v;
}

// JSON.stringify escapes a string exactly as the canonical form does. Array.sort compares UTF-16 code units.
export function canonical(v) {
  if (v instanceof Literal) return v.text;
  if (Array.isArray(v)) return `[${v.map(canonical).join(",")}]`;
  if (v instanceof Map) return `{${[...v.keys()].sort().map((k) => `${JSON.stringify(k)}:${canonical(v.get(k))}`).join(",")}}`;
  return JSON.stringify(v);
}

export const without = (object, ...names) => new Map([...object].filter(([name]) => !names.includes(name)));
export const object = (members) => new Map(Object.entries(members).filter(([, v]) => v !== undefined));
export const same = (a, b) => canonical(a ?? null) === canonical(b ?? null);

export const digestBytes = (kind, bytes) => "sha256:" + sha256(`pgfsm ${kind}\0`, bytes).toString("hex");
export const digest = (kind, v) => digestBytes(kind, canonical(v));

// members checks that v is an object with exactly the named members; a name with a "?" may be missing.
export function members(v, names, place) {
  must(v instanceof Map, place, "not an object");
  const known = names.split(" ").filter(Boolean);
  for (const name of known) must(name.endsWith("?") || v.has(name), place, `the member "${name}" is missing`);
  for (const name of v.keys()) must(known.includes(name) || known.includes(name + "?"), place, `the member "${name}" is unknown`);
}

export const isString = (v) => typeof v === "string";
export const isDigest = (v) => isString(v) && /^sha256:[0-9a-f]{64}$/.test(v);
export const isUUID = (v) => isString(v) && /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(v);
export const isTime = (v) => isString(v) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(v) && new Date(v).toJSON() === v;

export function count(v, place) {
  must(v instanceof Literal && /^(0|[1-9][0-9]{0,15})$/.test(v.text) && Number.isSafeInteger(Number(v.text)), place, "not a whole number");
  return Number(v.text);
}

export function base64(text, place) {
  const bytes = Buffer.from(text, "base64");
  must(bytes.toString("base64") === text, place, "not base64");
  return bytes;
}

export function hashOf(text, place) {
  must(isString(text), place, "not a hash");
  const bytes = base64(text, place);
  must(bytes.length === 32, place, "not a hash");
  return bytes;
}

// textBytes returns the bytes of a member marked "text".
export function textBytes(v, place) {
  if (isString(v)) return Buffer.from(v);
  members(v, "base64", place);
  must(isString(v.get("base64")), place, "not base64");
  const bytes = base64(v.get("base64"), place);
  let valid = true;
  try { utf8(bytes, place); } catch { valid = false; }
  must(!valid, place, "base64 of bytes that are UTF-8");
  return bytes;
}
