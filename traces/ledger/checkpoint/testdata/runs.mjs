// The rules of runs, tokens and blocked people (R10 to R28, R51, R52): who asked, who voted, and what was sent.

import { count, isDigest, isTime, must } from "./json.mjs";
import { DELEGATED } from "./trace.mjs";

const WITHDRAWN = "taken back by who asked for it";
const isSubject = (name) => /^https?:\/\//.test(name) && name.includes("#");
const hasNoToken = (name) => name === "anonymous" || name.startsWith("local:") || isSubject(name);
const foldedName = (name) => name.replace(/^local:/, "").toUpperCase().toLowerCase();
const MAX_CALLS = 1000000;
const number = (value) => Number(value.text);

// RunRules follows the tokens, the blocks, the settings and the runs of a log. A log that begins later lacks some of them.
export class RunRules {
  constructor(complete) {
    this.complete = complete;
    this.tokens = new Map(); // by id
    this.blocked = new Set(); // names
    this.connections = new Map(); // ids, by person and server
    this.runs = new Map(); // by id
    this.late = new Set(); // ids of runs about which there was a late report
    this.prunedSilent = 0; // pruned runs that ended as unreported, without those in late
    this.settings = undefined; // the stated ones: an event with a generation
  }

  // addLogEvent adds an event that belongs to no run.
  addLogEvent(event, by, at, place) {
    switch (event.get("type")) {
      case "token.created":
        must(!this.tokens.has(event.get("id")), place, "the token is created twice", "R24");
        this.tokens.set(event.get("id"), { name: event.get("name"), role: event.get("role"), expires: event.get("expires"), revoked: false });
        break;
      case "token.revoked": {
        const token = this.tokens.get(event.get("id"));
        must(token ? !token.revoked : !this.complete, place, "the token is not there, or was revoked before", "R24");
        if (token) token.revoked = true;
        break;
      }
      case "identity.blocked": case "identity.unblocked": {
        const [issuer, subject] = ["issuer", "subject"].map((member) => event.get(member));
        must(isSubject(issuer + "#") && /^[!-~]{1,2048}$/.test(issuer) && !issuer.includes("#"), place, "issuer is no URL of an identity provider", "R25");
        must(/^[!-~]{1,255}$/.test(subject), place, "subject is not 1 to 255 printable characters", "R25");
        const name = `${event.get("issuer")}#${event.get("subject")}`, ends = event.get("type") === "identity.unblocked";
        must(this.blocked.has(name) === ends || !this.complete, place, ends ? `${name} is not blocked` : `${name} is blocked already`, "R25");
        if (ends) this.blocked.delete(name);
        else this.blocked.add(name);
        for (const key of ends ? [] : this.connections.keys()) if (JSON.parse(key)[0] === name) this.connections.delete(key);
        break;
      }
      case "connection.made": case "connection.ended": this.connected(event, by, at, place); break;
      case "command.started": case "bundle.activated":
        // A gateway states the settings; a command does only in a log without gateways.
        if (event.get("type") === "bundle.activated" || this.settings?.get("type") !== "bundle.activated") this.settings = event;
        break;
      case "mcp.passed":
        passageHolds(event, place);
        if (event.get("token") !== "") this.tokenHolds(event.get("token"), by, "agent", at, place, "R27");
        else {
          must(hasNoToken(by), place, `${by} needs a token`, "R27");
          this.notBlocked([by, event.get("on_behalf_of")], place, "R27");
        }
        break;
      case "prompt.captured": case "report.late":
        if (event.has("token")) this.tokenHolds(event.get("token"), by, "hook", at, place, "R27");
        else {
          must(hasNoToken(by), place, `${by} needs a token`, "R27");
          this.notBlocked([by], place, "R27");
        }
        if (event.get("type") === "report.late") this.lateHolds(event.get("run"), place);
        break;
      case "access.refused":
        if (!event.has("server")) {
          must(event.has("endpoint") && event.has("scope") && !event.has("token"), place, "it has no endpoint or no scope, or a token", "R27");
          must(isSubject(by), place, `${by} is no subject of an identity provider`, "R27");
          break;
        }
        must(!event.has("endpoint") && !event.has("scope") && event.has("token") !== hasNoToken(by), place, "it has a scope beside its server, or another credential than a token", "R27");
        must(Buffer.byteLength(event.get("server")) <= 256, place, "server is too long", "R27");
        if (event.has("token")) this.tokenHolds(event.get("token"), by, "agent", at, place, "R27");
    }
  }

  // lateHolds checks that a late report is the first one about a run that had ended as unreported. Of a pruned run, nobody knows the id.
  lateHolds(id, place) {
    const run = this.runs.get(id);
    must(!this.late.has(id), place, "it is the second late report about the run", "R51");
    this.late.add(id);
    if (run) must(run.ended && run.told === "call.unreported", place, "the run had not ended as unreported", "R51");
    else must(!this.complete || this.prunedSilent-- > 0, place, "the run is not there", "R51");
  }

  // connected checks that a connection is made or ended, and follows it.
  connected(event, by, at, place) {
    const [id, person, server] = ["id", "person", "server"].map((name) => event.get(name)), key = JSON.stringify([person, server]);
    if (event.get("type") === "connection.ended") {
      must(this.connections.get(key) === id || !this.complete, place, "the connection was not made, or has ended", "R52");
      this.connections.delete(key);
      return;
    }
    const fits = (name, most) => Buffer.byteLength(event.get(name) ?? "") <= most;
    must(person !== "" && person === by && isSubject(by) !== event.has("token"), place, "it is of another person, or without a token of that person", "R52");
    const kind = event.get("kind"), oauth = kind === "oauth" && event.get("issuer") && event.get("client") && fits("issuer", 2048) && fits("client", 2048);
    must((kind === "secret" || oauth) && id !== "" && server !== "" && event.get("resource") !== "" && fits("id", 128) && fits("server", 256) &&
      fits("resource", 2048) && fits("account", 128), place, "its kind is unknown, or a member is empty or too long", "R52");
    this.notBlocked([by], place, "R52");
    if (event.has("token")) this.tokenHolds(event.get("token"), by, "person", at, place, "R52");
    this.connections.set(key, id);
  }

  // accountHolds checks that the account of a call that is sent is a connection of its principal.
  accountHolds(run, place) {
    if (!run.account || !this.complete) return;
    const key = JSON.stringify([run.onBehalfOf ?? run.actor, run.server]);
    must(this.connections.get(key) === run.account.get("connection"), place, "the account is no connection of the principal then", "R52");
  }

  tokenHolds(id, name, role, at, place, rule) {
    const token = this.tokens.get(id);
    if (!token && !this.complete) return;
    const roles = role === "agent" ? ["agent", "person"] : [role];
    must(token?.name === name && roles.includes(token.role), place, `${id} is no token of ${name} with the role ${role}`, rule);
    must(!token.revoked && (token.expires === "" || at < token.expires), place, `the token ${id} is not valid`, rule);
  }

  notBlocked(names, place, rule) {
    for (const name of names) must(!this.blocked.has(name), place, `${name} is blocked`, rule);
  }

  // forget notes that the body of an entry of a run is missing. So nothing more is known of the run.
  forget(id) { this.runs.set(id, null); }

  // addRunEvent adds an event of a run. generation is the event with the run's generation, and bundle the content of its bundle, for
  // the first event of the run.
  addRunEvent(id, event, by, at, place, generation, bundle) {
    const type = event.get("type");
    if (type === "request.created") {
      this.runs.set(id, this.begun(event, by, at, place, generation, bundle));
      return;
    }
    const run = this.runs.get(id);
    if (run === null) return;
    if (run === undefined) return must(!this.complete, place, "the run has not begun", "R10");
    must(!run.ended || type === "outcome.delivered", place, "the run has ended", "R10");
    for (const input of event.get("inputs") ?? []) {
      if (input.get("event") instanceof Map && input.get("event").get("happened") === "decided") run.decidedAt = input.get("event").get("at");
    }
    switch (type) {
      case "call.reserved":
        must(run.status === "proposed" && !run.reserved, place, "a decision is made already", "R12");
        run.reserved = true;
        break;
      case "decision.made": this.decided(run, event, place); break;
      case "approval.requested":
        must(run.status === "pending" && !run.held, place, "nothing holds the call, or it is held already", "R13");
        run.held = event;
        run.expires = event.get("expires");
        run.owner = "";
        break;
      case "approval.approved": case "approval.denied": this.voted(run, event, by, at, place); break;
      case "approval.expired":
        must(run.held && !run.sent && ["pending", "approved"].includes(run.status), place, `the call is ${run.status}`, "R19");
        must(event.get("binding") === run.held.get("binding") && event.get("expires") === run.expires && at >= event.get("expires"), place, "it is not the expiry of the hold, or too early", "R19");
        run.status = "expired";
        break;
      case "run.claimed": run.owner = by; break;
      case "proxy.sent": case "call.delegated":
        must((type === "call.delegated") === run.delegates, place, `a request of the kind ${run.kind} has no ${type}`, "R20");
        must(["allowed", "approved"].includes(run.status) && !run.sent, place, `the call is ${run.status}, or was sent before`, "R20");
        must(run.owner !== "", place, "no process owns the run", "R20");
        must(!run.held || isTime(run.decidedAt) && run.decidedAt < run.held.get("expires"), place, "it was decided about after its expiry", "R20");
        must(!run.held || at < run.expires, place, "its approval had expired", "R20");
        this.notBlocked([run.actor, run.onBehalfOf, ...run.votes.map((vote) => vote.by)], place, "R20");
        this.accountHolds(run, place);
        run.sent = true;
        if (type === "call.delegated") run.owner = "";
        break;
      case "call.reported": case "call.unreported":
        must(run.delegates && run.sent && !run.told, place, "no permit was handed out, or the report came before", "R21");
        run.told = type;
        break;
      case "call.rewritten":
        must(run.told === "call.reported" && !run.rewritten, place, "no report says so", "R21");
        run.rewritten = true;
        break;
      case "tool.result":
        must(run.sent && !run.delegates && !run.returned, place, "no call was sent, or its result came before", "R21");
        run.returned = true;
        break;
      case "run.ended": outcomeHolds(run, event.get("outcome"), place); run.ended = true; break;
      case "outcome.delivered":
        must(run.held && run.ended && !run.delivered && ["reply", "repeat", "task"].includes(event.get("how")), place, "the run was not held, has not ended, or its outcome was delivered before", "R23");
        run.delivered = true;
    }
  }

  // begun returns a run that begins.
  begun(event, by, at, place, generation, bundle) {
    const request = event.get("request"), actor = request.get("actor"), identity = request.get("identity");
    const kind = request.get("kind"), delegates = DELEGATED.includes(kind);
    if (event.has("token")) this.tokenHolds(event.get("token"), actor, delegates ? "hook" : "agent", at, place, "R11");
    else must(hasNoToken(actor), place, `${actor} asked without a token`, "R11");
    if (isSubject(actor)) {
      must(identity?.has("credential"), place, "the request names no token of the subject", "R11");
      must(generation === undefined || (generation.get("issuers") ?? []).includes(actor.split("#")[0]), place, "the configuration has no such issuer", "R11");
    }
    const account = request.get("account"), onBehalfOf = identity?.get("on_behalf_of"), token = this.tokens.get(event.get("token"));
    must(!account || kind === "agent" && (isSubject(actor) || event.has("token") && !onBehalfOf), place, "an account of a request that has no principal", "R52");
    must(!account || !token || token.role === "person", place, "an account of a request with a token that is not a person's", "R52");
    return { actor, kind, delegates, account, server: event.get("call")?.get("server"), onBehalfOf, generation, bundle, status: "proposed", owner: by, votes: [] };
  }

  decided(run, event, place) {
    const outcome = event.get("outcome");
    must(!event.has("bundle") || run.status === "approved", place, "another bundle decided about a call that is not approved", "R12");
    must(outcome === "block" || ["proposed", "approved"].includes(run.status), place, `the call is ${run.status}`, "R12");
    if (run.status !== "approved") run.status = { allow: "allowed", hold: "pending" }[outcome] ?? "denied";
  }

  voted(run, event, by, at, place) {
    const approves = event.get("type") === "approval.approved";
    must(run.held && run.status === "pending" && event.get("binding") === run.held.get("binding") && at < run.held.get("expires"), place,
      "the call is not held, not by this binding, or not any more", "R14");
    const usable = approves && event.get("decides") && run.delegates, within = usable && run.generation?.get("claim_within_ms");
    const expires = within ? new Date(new Date(at).getTime() + number(within)).toISOString() : undefined;
    must(event.get("expires") === expires || usable && !run.generation, place, "the approval expires at another time", "R19");
    run.expires = event.get("expires") ?? run.expires;
    if (!approves && by === run.actor) this.takenBack(event, by, run, at, place);
    else {
      this.voterHolds(run, event, by, place);
      this.rightHolds(run, event, by, at, place);
    }
    run.votes.push({ by, approves });
    const decides = !approves || run.votes.length >= Math.max(number(run.held.get("quorum")), 1);
    must(event.get("decides") === decides, place, `${run.votes.length} have voted with it, so decides is wrong`, "R16");
    if (decides) run.status = approves ? "approved" : "denied";
  }

  takenBack(event, by, run, at, place) {
    must(event.get("reason") === WITHDRAWN && event.get("decides") === true, place, "it is a vote about one's own request", "R18");
    if (event.get("token") === "" && hasNoToken(by)) this.notBlocked([by, run.onBehalfOf], place, "R18");
    else this.tokenHolds(event.get("token"), by, "agent", at, place, "R18");
  }

  // voterHolds checks that others than the requester vote, once, in one of the roles that may decide.
  voterHolds(run, event, by, place) {
    if (!run.bundle) return;
    const lists = (run.bundle.get("identity")?.get("same") ?? []).map((names) => names.map(foldedName));
    const isSame = (a, b) => foldedName(a) === foldedName(b) || lists.some((names) => names.includes(foldedName(a)) && names.includes(foldedName(b)));
    must(![run.actor, run.onBehalfOf].some((name) => name && isSame(name, by)), place, "it is a vote about one's own request", "R15");
    must(!run.votes.some((vote) => isSame(vote.by, by)), place, "it is a second vote of one person", "R15");
    const groups = event.get("groups") ?? [], approvers = run.held.get("approvers");
    const roles = (run.bundle.get("roles") ?? []).filter((role) => role.get("actors").some((actor) => isNamed(actor, by, groups)));
    must(approvers.length === 0 || roles.some((role) => approvers.includes(role.get("role"))), place, "the voter has none of the roles that may decide", "R15");
  }

  // rightHolds checks the credential of a vote, and that the recorded configuration gives the right to vote.
  rightHolds(run, event, by, at, place) {
    must(event.has("credential") === isSubject(by) && !(event.has("credential") && event.get("token") !== ""), place, "it has no token, or one of another kind", "R17");
    const groups = event.get("groups") ?? [], settings = [run.generation, this.settings].filter(Boolean);
    if (run.bundle) {
      const named = (run.bundle.get("roles") ?? []).flatMap((role) => role.get("actors"));
      const all = [...named, ...settings.flatMap((s) => s.get("may")?.get("approve") ?? [])];
      must(groups.every((group, i) => all.includes(`group:${group}`) && (i === 0 || groups[i - 1] < group)), place, "groups has some on which the vote does not depend", "R17");
    }
    if (!event.has("credential")) return this.tokenHolds(event.get("token"), by, "approver", at, place, "R17");
    this.notBlocked([by], place, "R17");
    const mayVote = (s) => (s.get("issuers") ?? []).includes(by.split("#")[0]) && (s.get("may")?.get("approve") ?? []).some((entry) => isNamed(entry, by, groups));
    must(settings.some(mayVote) || !this.complete, place, "no recorded configuration gives this person the right to vote", "R17");
  }
}

// isNamed reports whether an entry of a list names somebody, or one of their groups.
const isNamed = (entry, name, groups) => entry === name || entry.startsWith("group:") && groups.includes(entry.slice("group:".length));

function passageHolds(event, place) {
  const size = (name) => Buffer.byteLength(event.get(name)), params = event.get("params");
  must(["to_server", "to_client"].includes(event.get("direction")), place, "direction is unknown", "R27");
  must(size("method") > 0 && size("method") <= 128 && size("server") > 0 && size("server") <= 256, place, "method or server is empty or too long", "R27");
  must(params === "" || isDigest(params), place, "params is no digest", "R27");
}

// tasksHold checks the counts of calls that a prune carries over, after those of the prune before.
export function tasksHold(tasks, before, place) {
  const keyOf = (one) => ["task", "server", "tool"].map((name) => one.get(name));
  const isBefore = (a, b) => {
    const i = a.findIndex((part, n) => part !== b[n]);
    return i >= 0 && Buffer.compare(Buffer.from(a[i]), Buffer.from(b[i])) < 0;
  };
  const calls = new Map();
  tasks.forEach((one, i) => {
    const key = keyOf(one), many = count(one.get("calls"), place);
    must(key[0] !== "" && many > 0 && many <= MAX_CALLS, place, "tasks has a count of no task, or of no calls", "R33");
    must(i === 0 || isBefore(keyOf(tasks[i - 1]), key), place, "tasks is not in order", "R33");
    calls.set(JSON.stringify(key), many);
  });
  for (const [key, many] of before) must((calls.get(key) ?? 0) >= many, place, `tasks forgets calls of ${key}`, "R33");
  return calls;
}

function outcomeHolds(run, outcome, place) {
  const effect = outcome.get("effect"), type = outcome.get("type");
  switch (type) {
    case "tool_result": case "tool_result_with_summary":
      return must(run.returned && effect === "done", place, "an answer without a result", "R22");
    case "blocked": case "final_answer":
      return must(!run.sent && effect === "not_sent", place, "a run whose call left ends as if nothing was sent", "R22");
    case "reported":
      return must(run.told === "call.reported" && (outcome.get("code") === "rewritten") === Boolean(run.rewritten) && effect !== "not_sent", place, "there is no such report", "R22");
    case "unreported": return must(run.told === "call.unreported" && effect === "unknown", place, "no permit was handed out, or there is a report", "R22");
    case "failed": return must(!run.delegates && run.sent || !run.sent && effect === "not_sent", place, "a run whose call did not leave ends as if it had", "R22");
  }
  must(false, place, `no run ends as ${type}`, "R22");
}
