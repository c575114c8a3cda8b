// Traces: the chain, the order of states, the outcome, and the digests in the facts

import { readFileSync } from "node:fs";
import { Literal, canonical, digest, digestBytes, isString, isTime, members, must, object, parse, same, shaped, textBytes, utf8, without } from "./json.mjs";

const COMMANDS = {
  list_tools: "do servers",
  complete: "do input planner prompt purpose",
  read_history: "do origins? queries task",
  await_decision: "binding do",
  await_report: "do permit",
  call_tool: "arguments do permit round? server tool trace?",
};
const ANSWERS = {
  tools_listed: "bundle? happened kept? servers",
  completed: "content exchanges happened refusal?",
  history_read: "calls happened origins? values",
  decided: "at binding call? happened rewritten? trace? votes",
  call_reported: "arguments? at bytes? failed? happened ran? result?",
  report_lapsed: "at happened reason",
  tool_returned: "happened redacted? result",
  effect_failed: "code effect exchanges? happened reason redacted?",
  interrupted: "code happened reason",
};
const FACTS = {
  screen: "bundle request verdict",
  discover: "catalog effective servers",
  plan: "catalog digest plan verdict",
  validate: "arguments definition dialect plan schema? server tool verdict",
  authorize: "arguments bundle definition history? plan verdict",
  assess: "approvers? arguments bundle condition? definition expires fresh_ms? mode plan policy? quorum? risk? score shadow? verdict",
  hold: "binding bound reason",
  approve: "at binding by verdict",
  permit: "arguments assessed binding? bundle definition permit plan round? server tool trace?",
  dispatch: "permit",
  delegate: "call? permit",
  report: "arguments? failed? permit ran? result? rewritten?",
  lapse: "permit reason",
  return: "bytes permit result",
  parse: "definition result structured verdict",
  summarize: "items structured verdict",
  answer: "note result",
  ask: "answer plan",
  block: "assessment? bundle? effect verdict",
  fail: "assessment? bundle? effect verdict",
};
// COMMANDS_FROM has the command of each state that has one; only history, and a summary, may be left out.
const COMMANDS_FROM = {
  screened: "list_tools", discovered: "complete", validated: "read_history", pending: "await_decision", approved: "list_tools",
  dispatched: "call_tool", delegated: "await_report", typed: "complete",
};
// PARTS has the members of the objects in lists of events and facts, by the name of the list.
const PARTS = {
  effective: "definition server tool", exchanges: "received sent status", items: "at claim evidence", redacted: "count rule", risk: "failed matched mode reason rule score",
  shadow: "condition effect failed policy", values: "failed of path scope value window", votes: "at binding by display? groups? outcome reason",
};
const BOUND = "account? actor approvers arguments condition connection definition env expires fresh_ms? kind? mode on_behalf_of? origins? pin policy quorum risk run schema? " +
  "score server session? tool";
export const REQUEST = "account? actor at identity? kind large? mcp_session? round? session? task? text trace?";
const KINDS = ["ask", "call", "agent", "hook", "evaluation"];
// DELEGATED are the kinds of requests whose call the client makes itself.
export const DELEGATED = ["hook", "evaluation"];
const GATES = ["input", "plan", "schema", "allowlist", "grant", "policy", "approval", "output", "evidence", "run"];
const EFFECTS = ["not_sent", "unknown", "done"];
const TERMINAL = ["answered", "reported", "unreported", "needs_info", "blocked", "failed", "pending", "delegated"];

export function verifyTrace(bytes, { head, machine } = {}) {
  const trace = parse(utf8(bytes, "trace"), "trace");
  members(trace, "bundle format machine request run_id steps outcome head", "trace");
  must(trace.get("format") === "pgfsm.trace/v1", "format", "not pgfsm.trace/v1");
  const [bundle, request, steps] = ["bundle", "request", "steps"].map((m) => trace.get(m));
  bundleHolds(bundle, "bundle");
  members(request, REQUEST, "request");
  must(KINDS.includes(request.get("kind")), "request", "kind is unknown");
  must(Array.isArray(steps) && steps.length > 0, "steps", "there is no step");

  const header = without(trace, "steps", "outcome", "head").set("bundle", bundle.get("digest"));
  let prev = digest("trace header", header);
  steps.forEach((step, seq) => {
    const place = `step ${seq}`;
    members(step, "at command event facts from hash prev seq to trigger", place);
    must(same(step.get("seq"), new Literal(String(seq))), place, "seq does not match");
    must(step.get("prev") === prev, place, "prev does not match");
    must(step.get("hash") === digest("trace step", without(step, "hash")), place, "hash does not match");
    prev = step.get("hash");
  });
  const computed = digest("trace head", object({ last: prev, outcome: trace.get("outcome") }));
  must(trace.get("head") === computed, "head", "does not match");
  must(head === undefined || head === computed, "head", `it is ${computed}, not the given one`);
  contentHolds(trace, machine);
  return { trace, last: prev };
}

function bundleHolds(bundle, place) {
  members(bundle, "content digest", place);
  must(bundle.get("digest") === digest("bundle", bundle.get("content")), place, "digest does not match");
}

// contentHolds checks the steps in order; run gathers what later steps must agree with.
function contentHolds(trace, machine) {
  const request = trace.get("request"), outcome = trace.get("outcome"), steps = trace.get("steps");
  textBytes(request.get("text"), "request: text");
  if (request.has("round")) textBytes(request.get("round"), "request: round");
  traceContextHolds(request.get("trace"), "request: trace");
  mcpSessionHolds(request, trace.get("bundle")?.get("content"));
  if (request.has("session")) members(request.get("session"), "call? calls? client id observed? prompt? rewritten?", "request: session");
  if (request.has("account")) shaped("request: account", () => accountHolds(request.get("account"), "request: account"));
  if (request.has("large")) shaped("request: large", () => largeHolds(trace, "request: large"));
  if (request.has("identity")) shaped("request: identity", () => identityHolds(request, "request: identity"));
  if (machine) must(trace.get("machine") === machine.digest, "machine", "the table is not the known one");
  const run = { bundle: trace.get("bundle"), request, id: trace.get("run_id"), calls: 0 };
  let from = "received", at = request.get("at");
  must(isTime(at), "request", "at is not a time");
  steps.forEach((step, seq) => {
    const place = `step ${seq}`, trigger = step.get("trigger"), facts = step.get("facts"), to = step.get("to");
    must(step.get("from") === from, place, `it is not from ${from}`);
    if (machine) must(machine.rows.has(`${from} ${trigger} ${to}`), place, `the table has no row ${from} ${trigger} ${to}`);
    must(isTime(step.get("at")) && step.get("at") >= at, place, "at is not a time, or earlier than before");
    must(trigger in FACTS, place, "the trigger is unknown");
    members(facts, FACTS[trigger], `${place}: facts`);
    shaped(place, () => effectHolds(step, run, `${place}: `));
    shaped(`${place}: facts`, () => factsHold(step, run, `${place}: facts`));
    from = to;
    at = step.get("at");
  });
  must(TERMINAL.includes(from), "steps", `the last one leads to ${from}, where no run ends`);
  const expected = outcomeOf(steps, run);
  for (const name of Object.keys(expected)) must(same(outcome.get(name), expected[name]), "outcome", `${name} does not follow from the steps`);
  members(outcome, Object.keys(expected).join(" "), "outcome");
}

// largeHolds checks what stands for arguments that were refused for their size. Such a run ends at once.
function largeHolds(trace, place) {
  const large = trace.get("request").get("large"), limits = trace.get("bundle").get("content").get("limits"), [step] = trace.get("steps");
  members(large, "bytes digest values", place);
  must(trace.get("request").get("kind") !== "ask", place, "a question has no arguments");
  must(/^sha256:[0-9a-f]{64}$/.test(large.get("digest")), place, "digest is no digest");
  const size = (map, name) => Number(map.get(name).text);
  must(size(large, "bytes") > size(limits, "arguments_bytes") || size(large, "values") > 50000, place, "they are not too large");
  must(step.get("trigger") === "block" && step.get("facts").get("verdict").get("code") === "arguments_too_large", place, "the call is not refused");
}

// credentialHolds checks what names a token of an identity provider.
export function credentialHolds(credential, place) {
  members(credential, "jti? kid", `${place}: credential`);
  const fits = (id) => isString(id) && id !== "" && Buffer.byteLength(id) <= 128;
  must(fits(credential.get("kid")) && fits(credential.get("jti") ?? "none"), `${place}: credential`, "not the id of a key, or of a token");
}

// accountHolds checks the form of the account that a call uses.
export function accountHolds(account, place) {
  members(account, "connection issuer? label? scopes?", place);
  must(["connection", "issuer", "label"].every((name) => isString(account.get(name) ?? "-")), place, "a member is no text");
  must(account.get("issuer") !== "" && account.get("label") !== "" && (account.get("scopes") ?? ["-"]).length > 0, place, "a member is empty");
  must((account.get("scopes") ?? []).every(isString), place, "a scope is no text");
}

// identityHolds checks what an identity provider says about the actor.
export function identityHolds(request, place) {
  const identity = request.get("identity"), claims = identity.get("claims") ?? [], groups = identity.get("groups") ?? [];
  members(identity, "claims? client? credential? display? groups? kind? on_behalf_of? on_behalf_of_display?", place);
  if (identity.has("credential")) credentialHolds(identity.get("credential"), place);
  claims.forEach((claim) => members(claim, "name value", `${place}: claims`));
  must(["agent", "person", undefined].includes(identity.get("kind")), place, "kind is unknown");
  const given = ["client", "display", "on_behalf_of", "on_behalf_of_display"].filter((name) => identity.has(name));
  must(given.every((name) => isString(identity.get(name)) && identity.get(name) !== ""), place, "a member is empty");
  must(request.get("actor").includes("#"), place, "the actor is not of an identity provider");
  for (const [name, list] of Object.entries({ claims: claims.map((claim) => claim.get("name")), groups })) {
    must(list.every(isString) && same(list, [...list].sort()), `${place}: ${name}`, "they are not in order");
  }
}

// partsHold checks the members of the objects in the lists of an event or of facts.
function partsHold(of, place) {
  for (const name of Object.keys(PARTS)) {
    for (const part of of.get(name) ?? []) members(part, PARTS[name], `${place}: ${name}`);
  }
}

// traceContextHolds checks the form of a trace context, if there is one.
function traceContextHolds(context, place) {
  if (context === undefined) return;
  members(context, "span? traceparent tracestate?", place);
  const zero = /^0*$/, [, trace, call] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]$/.exec(context.get("traceparent")) ?? ["", "", ""];
  must(!zero.test(trace) && !zero.test(call), place, "it is no traceparent");
  const span = context.get("span") ?? "1".repeat(16), state = context.get("tracestate") ?? "";
  must(/^[0-9a-f]{16}$/.test(span) && !zero.test(span), place, "it is no span");
  must(/^[ -~]{0,512}$/.test(state), place, "it is no tracestate");
}

// effectHolds checks the command and the event of a step.
function effectHolds(step, run, place) {
  const command = step.get("command"), event = step.get("event"), from = step.get("from");
  if (command !== null) {
    must(command instanceof Map && command.get("do") in COMMANDS, place + "command", "it is unknown");
    members(command, COMMANDS[command.get("do")], place + "command");
    must(COMMANDS_FROM[from] === command.get("do"), place + "command", `the machine gives none of this kind in ${from}`);
    if (command.has("purpose")) must(command.get("purpose") === { discovered: "plan", typed: "summary" }[from], place + "command", "purpose is unknown");
    must(event !== null, place + "command", "it has no event");
    if (command.get("do") === "call_tool") {
      must(from === "dispatched" && ++run.calls === 1, place + "command", "a second call, or a call that is not from dispatched");
      const expected = { arguments: run.arguments, permit: run.permit, server: run.plan.get("server"), tool: run.plan.get("tool") };
      for (const [name, want] of Object.entries(expected)) must(command.get(name) === want, place + "command", `${name} does not match`);
      must(same(command.get("trace"), run.traceContext), place + "command", "trace does not match");
    }
  }
  const asks = from !== "discovered" || run.request.get("kind") === "ask";
  const required = from in COMMANDS_FROM && !["validated", "typed"].includes(from) && asks;
  must(command !== null || event?.get("happened") === "interrupted" || !required, place + "command", "it is missing");
  if (event === null) return;
  must(event instanceof Map && event.get("happened") in ANSWERS, place + "event", "it is unknown");
  const happened = event.get("happened");
  must(command !== null || happened === "interrupted", place + "event", "it answers no command");
  members(event, ANSWERS[happened], place + "event");
  partsHold(event, place + "event");
  if (event.has("kept")) members(event.get("kept"), "age_s catalog", place + "event: kept");
  if (happened === "tools_listed") listingHolds(event, step, run, place + "event");
  if (happened === "completed") completionHolds(event, command, place + "event");
  if (happened === "effect_failed") must(EFFECTS.includes(event.get("effect")), place + "event", "effect is unknown");
  if (happened === "history_read") {
    must(event.has("origins") === (command.get("origins") === true), place + "event", "origins are not what was asked for");
    if (event.has("origins")) originsHold(event.get("origins"), place + "event: origins");
    run.origins = event.has("origins") ? digest("origins", event.get("origins")) : undefined;
    run.history = digest("history", event);
  }
  for (const removed of event.get("redacted") ?? []) {
    must(Number.isInteger(removed.get("count")) && removed.get("count") > 0, place + "event: redacted", "a count is not a number over 0");
    must(typeof removed.get("rule") === "string" && removed.get("rule") !== "", place + "event: redacted", "a rule has no name");
  }
  if (happened === "tool_returned") run.returned = textBytes(event.get("result"), place + "event: result");
  if (happened === "decided") {
    traceContextHolds(event.get("trace"), place + "event: trace");
    run.approvedContext = event.get("trace");
    run.call = event.get("call");
    const votes = event.get("votes"), times = votes.map((vote) => vote.get("at"));
    must(votes.every((vote) => ["approve", "deny"].includes(vote.get("outcome"))), place + "event", "the outcome of a vote is unknown");
    [run.heldAt, ...times, event.get("at")].reduce((before, time) => {
      must(isTime(time) && before <= time, place + "event", "a vote is out of order");
      return time;
    });
  }
}

// originsHold checks what is said of where arguments come from, without a look at the session.
export function originsHold(origins, place) {
  members(origins, "earlier? failed? leaves private? prompts? runs? untrusted?", place);
  const isIndex = (v) => v instanceof Literal && /^[1-9][0-9]{0,15}$/.test(v.text), isOn = (map, name) => !map.has(name) || map.get(name) === true;
  const leaves = origins.get("leaves"), counts = ["prompts", "runs", "earlier"];
  must(Array.isArray(leaves) && isOn(origins, "private") && isOn(origins, "untrusted"), place, "a member has another form");
  must(counts.every((name) => !origins.has(name) || isIndex(origins.get(name))), place, "a number of prompts or calls has another form");
  if (origins.has("failed")) {
    const nothing = leaves.length === 0 && !counts.some((name) => origins.has(name)) && origins.has("private") && origins.has("untrusted");
    must(isString(origins.get("failed")) && origins.get("failed") !== "" && nothing, place, "origins were found although nothing was looked at");
  }
  must(leaves.length <= 514, place, `there are ${leaves.length} leaves`);
  for (const leaf of leaves) {
    members(leaf, "at end? exempt? form? name? origin place? role? source? start?", `${place}: leaves`);
    const at = leaf.get("at"), from = leaf.get("origin"), leafPlace = `${place}: ${at}`;
    const forms = ["form", "place", "role", "source"].every((name) => !leaf.has(name) || isString(leaf.get(name)) && leaf.get(name) !== "");
    must(isString(at) && forms && isOn(leaf, "exempt") && isOn(leaf, "name"), leafPlace, "a member has another form");
    must(["target", "amount", "content", undefined].includes(leaf.get("role")), leafPlace, "the role is unknown");
    must(["request", "trusted", "own", "none"].includes(from), leafPlace, "the origin is unknown");
    const isIn = /^[1-9][0-9]{0,15}$/.test(leaf.get("source") ?? "") && origins.has(from === "request" ? "prompts" : "runs");
    must(from === "none" ? !leaf.has("source") && !leaf.has("form") : isIn, leafPlace, "its source was not looked at");
    const start = leaf.get("start") ?? new Literal("0"), end = leaf.get("end") ?? new Literal("0");
    must((!leaf.has("start") || isIndex(start)) && (!leaf.has("end") || isIndex(end)), leafPlace, "its place has another form");
    must(from === "request" ? Number(end.text) > Number(start.text) : !leaf.has("start") && !leaf.has("end"), leafPlace, "its place is not one of its origin");
    must(!leaf.has("place") || ["trusted", "own"].includes(from), leafPlace, "its place is not one of its origin");
  }
}

function listingHolds(event, step, run, place) {
  run.listed = event.get("servers").map((listing) => {
    members(listing, "code name pages protocol reason server status version", place + ": servers");
    must(["up", "down"].includes(listing.get("status")), place, "the status of a server is unknown");
    const pages = listing.get("pages").map((page) => textBytes(page, place + ": pages"));
    return { server: listing.get("server"), pages };
  });
  run.catalog = digest("catalog", without(event, "kept", "bundle"));
  run.judged = run.bundle.get("digest");
  if (!event.has("bundle")) return;
  const bundle = event.get("bundle");
  members(bundle, "content digest", place + ": bundle");
  const unreadable = bundle.get("digest") !== digest("bundle", bundle.get("content"));
  must(!unreadable || step.get("to") === "blocked", place + ": bundle", "digest does not match");
  must(step.get("from") === "approved", place + ": bundle", "only a step from approved has one");
  run.judged = bundle.get("digest");
}

// completionHolds compares the answer of a model with the last exchange.
function completionHolds(event, command, place) {
  textBytes(event.get("content"), place + ": content");
  const last = event.get("exchanges").at(-1);
  if (last === undefined) {
    const asks = command.get("prompt") !== "" && (command.get("purpose") === "summary" || command.get("planner") === "llm");
    must(!asks, place, "there is no exchange with the model");
    return;
  }
  const received = textBytes(last.get("received"), place + ": received");
  const choices = parse(utf8(received, place), place + ": received").get("choices");
  must(same(last.get("status"), new Literal("200")) && choices.length === 1, place, "the last exchange is no answer");
  const message = choices[0].get("message");
  for (const name of ["content", "refusal"]) must((message.get(name) ?? "") === (event.get(name) ?? ""), place, `${name} is not that of the last exchange`);
}

// definitions returns the digests of the tool's objects in a listing.
function definitions(listed, server, tool) {
  const pages = listed.filter((listing) => listing.server === server).flatMap((listing) => listing.pages);
  const tools = pages.flatMap((page) => parse(utf8(page, "page"), "page").get("tools") ?? []);
  return tools.filter((t) => t.get("name") === tool).map((t) => digest("tool definition", without(t, "_meta")));
}

// factsHold compares the digests and the verdicts of a step's facts.
function factsHold(step, run, place) {
  const facts = step.get("facts"), trigger = step.get("trigger"), plan = run.plan;
  const equals = (name, want) => must(same(facts.get(name), want), place, `${name} does not match`);
  partsHold(facts, place);
  for (const server of facts.get("servers") ?? []) members(server, "code protocol reason server status tools", place + ": servers");
  const each = (names) => names.split(" ").forEach((name) => equals(name, run[name]));
  if (facts.has("verdict")) {
    const allowed = { block: ["block"], fail: ["block"], assess: ["allow", "hold"] }[trigger] ?? ["allow"];
    const verdict = facts.get("verdict");
    members(verdict, "code gate outcome reason", place + ": verdict");
    must(GATES.includes(verdict.get("gate")), place + ": verdict", "gate is unknown");
    must(allowed.includes(verdict.get("outcome")), place + ": verdict", "outcome does not belong to the trigger");
    must((verdict.get("code") === "") === (verdict.get("outcome") === "allow"), place + ": verdict", "code does not belong to the outcome");
  }
  switch (trigger) {
  case "screen":
    equals("bundle", run.bundle.get("digest"));
    equals("request", digest("request", run.request));
    break;
  case "discover":
    each("catalog");
    break;
  case "plan":
    each("catalog");
    run.plan = facts.get("plan");
    run.planDigest = digest("plan", run.plan);
    equals("digest", run.planDigest);
    break;
  case "validate":
    run.arguments = digest("arguments", plan.get("args"));
    run.definition = facts.get("definition");
    run.schema = ownSchema(run.bundle, plan);
    equals("schema", run.schema);
    equals("server", plan.get("server"));
    equals("tool", plan.get("tool"));
    must(definitions(run.listed, plan.get("server"), plan.get("tool")).includes(run.definition), place, "definition is not that of a listed tool");
    equals("plan", run.planDigest);
    each("arguments");
    break;
  case "authorize":
    equals("history", run.history);
    // falls through: the judged call is the validated one
  case "assess":
    equals("bundle", run.bundle.get("digest"));
    equals("plan", run.planDigest);
    each("arguments definition");
    if (trigger === "assess") run.assessed = facts;
    break;
  case "hold":
    must(run.assessed.get("verdict").get("outcome") === "hold", place, "nothing holds the call");
    equals("reason", run.assessed.get("verdict").get("reason"));
    boundHolds(facts.get("bound"), run, place + ": bound");
    run.binding = digest("approval binding", facts.get("bound"));
    run.heldAt = step.get("at");
    each("binding");
    break;
  case "approve":
    each("binding");
    equals("at", step.get("event").get("at"));
    equals("by", step.get("event").get("votes").map((vote) => vote.get("by")));
    break;
  case "permit":
    permitHolds(step, run, place, equals);
    break;
  case "dispatch":
    must(!DELEGATED.includes(run.request.get("kind")), place, "the client makes this call itself");
    each("permit");
    break;
  case "delegate":
    must(DELEGATED.includes(run.request.get("kind")), place, "pgfsm makes this call");
    equals("call", run.binding === undefined ? run.request.get("session")?.get("call") : run.call);
    each("permit");
    break;
  case "report": {
    const event = step.get("event"), ran = event.get("arguments");
    for (const name of ["arguments", "failed", "ran", "result"]) equals(name, event.get(name));
    must(!event.has("ran") || digest("arguments", event.get("ran")) === ran, place, "ran does not have its digest");
    equals("rewritten", ran !== undefined && ran !== run.arguments ? true : undefined);
    each("permit");
    break;
  }
  case "lapse":
    if (step.get("event").get("happened") === "report_lapsed") equals("reason", step.get("event").get("reason"));
    each("permit");
    break;
  case "return":
    run.result = digestBytes("result", run.returned);
    equals("bytes", new Literal(String(run.returned.length)));
    each("permit result");
    break;
  case "parse":
    run.content = parse(utf8(run.returned, place), place + ": result").get("structuredContent");
    run.structured = digest("structured content", run.content);
    each("definition result structured");
    break;
  case "summarize":
    each("structured");
    facts.get("items").forEach((item, i) => must(evidenceHolds(item, run.content), `${place}: item ${i}`, "evidence is not at its place"));
    break;
  case "answer":
    each("result");
    break;
  case "ask":
    equals("plan", run.planDigest);
    equals("answer", plan.get("answer"));
    break;
  }
}

// ownSchema is the digest of the operator's schema in place of the inputSchema of the plan's tool.
function ownSchema(bundle, plan) {
  const own = bundle.get("content").get("schemas")?.find((s) => s.get("server") === plan.get("server") && s.get("tool") === plan.get("tool"));
  return own && digest("input schema", own.get("schema"));
}

// mcpSessionHolds checks the session of a request that no hook told. bundle is the content of its bundle, if it is known.
export function mcpSessionHolds(request, bundle) {
  const key = request.get("mcp_session");
  if (key === undefined) return;
  must(request.get("kind") === "agent" && !request.has("session") && !request.has("task") && /^(mcp|meta)\/./.test(key), "request: mcp_session",
    "it is not the only session of an agent's call", "R50");
  if (bundle && key.startsWith("meta/")) must((bundle.get("labels")?.get("sessions") ?? []).includes(request.get("actor")), "request: mcp_session",
    "the labels do not let its client name a session", "R50");
}

// sessionKey names the session of the client in which a call was requested.
export function sessionKey(request) {
  const session = request.get("session");
  return session ? `${session.get("client")}/${session.get("id")}` : request.get("mcp_session");
}

function boundHolds(bound, run, place) {
  members(bound, BOUND, place);
  const server = run.bundle.get("content").get("servers").find((s) => s.get("name") === run.plan.get("server"));
  const expected = {
    actor: run.request.get("actor"), kind: DELEGATED.includes(run.request.get("kind")) ? run.request.get("kind") : undefined,
    session: DELEGATED.includes(run.request.get("kind")) ? sessionKey(run.request) : undefined, on_behalf_of: run.request.get("identity")?.get("on_behalf_of"), run: run.id, env: run.bundle.get("content").get("env"),
    arguments: run.arguments, definition: run.definition, schema: run.schema, server: run.plan.get("server"), tool: run.plan.get("tool"),
    origins: run.origins, connection: digest("connection", without(server, "connect_timeout_ms", "timeout_total_ms").set("timeout_ms", new Literal("0"))),
  };
  for (const [name, want] of Object.entries(expected)) must(bound.get(name) === want, place, `${name} does not match`);
  must(same(bound.get("account"), run.request.get("account")), place, "account does not match");
}

function permitHolds(step, run, place, equals) {
  const facts = step.get("facts"), plan = run.plan, fromApproved = step.get("from") === "approved";
  const round = run.request.has("round") ? digestBytes("round", textBytes(run.request.get("round"), "request: round")) : undefined;
  run.traceContext = fromApproved ? run.approvedContext : run.request.get("trace");
  run.permit = digest("permit", object({
    arguments: plan.get("args"), bundle: run.judged, definition: run.definition, plan: run.planDigest, round,
    run: run.id, server: plan.get("server"), tool: plan.get("tool"), trace: run.traceContext,
  }));
  const expected = {
    arguments: plan.get("args"), bundle: run.judged, definition: run.definition, plan: run.planDigest, round,
    server: plan.get("server"), tool: plan.get("tool"), permit: run.permit, binding: fromApproved ? run.binding : undefined,
    trace: run.traceContext,
  };
  for (const [name, want] of Object.entries(expected)) equals(name, want);
  must(definitions(run.listed, plan.get("server"), plan.get("tool")).includes(run.definition), place, "definition is not that of a listed tool");
  if (!fromApproved) {
    equals("assessed", run.assessed.get("verdict"));
    must(run.assessed.get("verdict").get("outcome") === "allow", place, "nothing allows the call");
  }
}

// evidenceHolds finds an item's evidence by its JSON pointer (RFC 6901).
function evidenceHolds(item, content) {
  const at = item.get("at");
  let value = content;
  for (const part of at.get("pointer").split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    value = value instanceof Map ? value.get(name) : value?.[Number(name)];
  }
  const bytes = Buffer.from(isString(value) ? value : canonical(value ?? null));
  return bytes.subarray(Number(at.get("start").text), Number(at.get("end").text)).equals(Buffer.from(item.get("evidence")));
}

function outcomeOf(steps, run) {
  const state = steps.at(-1).get("to"), facts = steps.at(-1).get("facts"), verdict = facts.get("verdict");
  const outcome = { code: "", effect: "not_sent", gate: "", note: "", reason: "", state, type: state };
  switch (state) {
  case "answered":
    outcome.type = steps.some((step) => step.get("to") === "summarized") ? "tool_result_with_summary" : "tool_result";
    outcome.effect = "done";
    outcome.note = facts.get("note");
    break;
  case "needs_info":
    outcome.type = "final_answer";
    outcome.reason = facts.get("answer");
    break;
  case "delegated":
    outcome.effect = "unknown";
    break;
  case "reported":
    outcome.effect = facts.get("failed") ? "unknown" : "done";
    outcome.code = facts.get("rewritten") ? "rewritten" : facts.get("failed") ? "reported_failed" : "";
    outcome.reason = "The client reported " + (facts.get("rewritten") ? "that the call ran with other arguments than the permitted ones."
      : facts.get("failed") ? "that the call failed." : "the call.");
    break;
  case "unreported":
    Object.assign(outcome, { effect: "unknown", code: "unreported", reason: facts.get("reason") });
    break;
  case "pending":
    outcome.code = "approval_required";
    outcome.gate = run.assessed.get("verdict").get("gate");
    outcome.reason = run.assessed.get("verdict").get("reason");
    break;
  default:
    ["code", "gate", "reason"].forEach((name) => { outcome[name] = verdict.get(name); });
    outcome.effect = state === "failed" ? facts.get("effect") : "not_sent";
  }
  return outcome;
}

// readMachine reads the table of transitions: the one line of JSON on its page.
export function readMachine(file) {
  const line = readFileSync(file, "utf8").split("\n").find((l) => l.startsWith("{"));
  const table = parse(line, file);
  const rows = table.get("rows").map((row) => `${row.get("from")} ${row.get("on")} ${row.get("to")}`);
  return { digest: digest("machine", table), rows: new Set(rows) };
}
