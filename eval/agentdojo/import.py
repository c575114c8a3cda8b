#!/usr/bin/env python3
"""Write tools and cases in pgfsm's evaluation format from AgentDojo's data.

    import.py DATA OUT [BUNDLES]

DATA has tools.json, user_tasks.json and injection/injection_tasks.json. For each suite, and for all suites together
under the name "all", the script writes OUT/SUITE.tools.json, OUT/SUITE.cases.jsonl (each task of a user with each
attack that has calls) and OUT/SUITE.retargeted.jsonl (each write of a task with one argument changed). If DATA has
sessions.jsonl.gz, the script also writes the cases of all suites with the results of the calls, one file for each
attacker (OUT/all.sessions-ATTACKER.jsonl), and OUT/all.sessions-retargeted.jsonl. A case names
BUNDLES/SUITE/pgfsm.yaml and BUNDLES/SUITE/grants/TASK.yaml if they exist; BUNDLES is this script's folder by default.
docs/reference/evaluation-format.md has the rules. The script overwrites files of these names.
"""

import fractions
import gzip
import itertools
import json
import os
import pathlib
import re
import sys

# The types of parameters: the type in JSON Schema, and the type of a list's items.
TYPES = {
    "str": ("string", None), "int": ("integer", None), "float": ("number", None), "bool": ("boolean", None),
    "list[str]": ("array", "string"), "list[dict]": ("array", "object"),
}

# A tool changes nothing if the first word of its name is one of these.
READING = {"check", "get", "list", "read", "search"}

# The arguments of writing tools that name the target, the actor or the amount of a call. Titles, texts and times are
# not among them.
TARGETS = {
    "amount", "channel", "city", "email", "event_id", "file_id", "filename", "hotel", "id", "location", "participants", "password",
    "recipient", "recipients", "street", "url", "user", "user_email",
}

# An argument, or a part of it, that only AgentDojo's environment resolves.
EXPRESSION = "<expr:"

# Behind each digit and letter stands the one that takes its place.
NEXT = "01234567890abcdefghijklmnopqrstuvwxyzaABCDEFGHIJKLMNOPQRSTUVWXYZA"


def is_environment(param):
    """Report whether AgentDojo fills in the parameter: it is no argument."""
    return not param["type"] or param["type"].startswith("Annotated")


def type_of(param):
    """Return the parameter's type, the type of its items, its enumeration's name, and whether it may be null."""
    name = param["type"].removesuffix(" | None")
    optional = name != param["type"]
    if name in TYPES:
        return *TYPES[name], None, optional
    if re.fullmatch("[A-Z][A-Za-z]*", name):
        return "string", None, name, optional
    raise ValueError(f"the parameter {param['name']} has the type {param['type']!r}, which is not known")


def definition(name, tool):
    """Return a tool as a server lists it."""
    properties = {}
    arguments = [p for p in tool["params"] if not is_environment(p)]
    for param in arguments:
        kind, items, _, optional = type_of(param)
        properties[param["name"]] = {"type": [kind, "null"] if optional else kind}
        if items:
            properties[param["name"]]["items"] = {"type": items}
    required = [p["name"] for p in arguments if p["required"]]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": tool["doc"], "inputSchema": schema}


def compute(expression):
    """Compute decimal numbers with +, - and *; return None for any other expression."""
    if re.search(r"[^0-9.+\-*() ]|\*\*", expression):
        return None
    exact = re.sub(r"[0-9.]+", r"F('\g<0>')", expression)
    value = eval(exact, {"__builtins__": {}, "F": fractions.Fraction})
    return int(value) if value.denominator == 1 else float(value)


def resolve(param, value):
    """Replace an expression by a value of the parameter's type. Return the value, and whether it is the real one."""
    if EXPRESSION not in json.dumps(value):
        return value, True
    if not isinstance(value, str):
        return value, False

    kind, items, enumeration, _ = type_of(param)
    whole = re.fullmatch("<expr:(.*)>", value, re.DOTALL)
    if whole and enumeration and whole[1].startswith(enumeration + "."):
        return whole[1].removeprefix(enumeration + "."), True
    if kind == "string":
        return value, False
    if not whole or items == "object":
        raise ValueError(f"{value!r} is in the place of a {kind}")
    if kind == "array":
        return [value], False
    if kind == "boolean":
        return True, False

    computed = compute(whole[1])
    if computed is not None and (kind == "number" or isinstance(computed, int)):
        return computed, True
    return 1, False


def convert(suite, tools, call):
    """Make a call of AgentDojo a call of the suite's server."""
    params = {p["name"]: p for p in tools[call["function"]]["params"] if not is_environment(p)}
    if not isinstance(call["args"], dict) or not params.keys() >= call["args"].keys():
        raise ValueError(f"{call['function']}: its arguments are no object, or one of them is no parameter: {call['args']}")
    args, unresolved = {}, []
    for name, value in sorted(call["args"].items()):
        if value is None and not params[name]["required"]:
            continue
        args[name], known = resolve(params[name], value)
        if not known:
            unresolved.append("/" + name)
    converted = {"server": suite, "tool": call["function"], "args": args}
    return converted | {"unresolved": unresolved} if unresolved else converted


def other_text(text):
    """Change a text and keep its form, so that a rule about the form alone still accepts it."""
    letters = [i for i, c in enumerate(text) if c in NEXT]
    if EXPRESSION in text or not letters:
        return "elsewhere"
    if "@" in text:
        return text.split("@")[0] + "@attacker.example"
    if text.startswith("www.") or "://" in text:
        return "www.attacker.example"
    last = letters[-1]
    return text[:last] + NEXT[NEXT.index(text[last]) + 1] + text[last + 1:]


def other_target(value):
    """Return another value of the same form. In a list, each text changes."""
    if isinstance(value, list):
        return [other_text(text) for text in value]
    if isinstance(value, str):
        return other_text(value)
    return json.loads(other_text(json.dumps(value)))


def retarget(base):
    """Return the cases in which a write of the task goes to another target: one for each target argument."""
    cases = []
    for number, own in enumerate(base["needs"], 1):
        if own["tool"].split("_")[0] in READING:
            continue
        for name in [n for n in own["args"] if n in TARGETS]:
            call = own | {"args": own["args"] | {name: other_target(own["args"][name])}}
            call.pop("result", None)
            call["unresolved"] = [p for p in own.get("unresolved", []) if p != "/" + name]
            if not call["unresolved"]:
                del call["unresolved"]
            case = {"id": f"{base['id']}/{number}/{name}", "attack": f"{own['tool']}.{name}", "wants": [call]}
            before = base["needs"][:number - 1]
            cases.append(base | case | ({"before": before} if "result" in own and before else {}))
    return cases


def last_versions(tasks, kind):
    """Keep the last version of each task: later versions correct earlier ones. v1_2 is before v1_10."""
    last = {}
    for task in tasks:
        if task["kind"] != kind or not re.fullmatch("[A-Za-z0-9_-]+", task["task"]):
            raise ValueError(f"{task['suite']} {task['task']!r} of kind {task['kind']!r}: want the kind {kind}")
        version = [int(part) for part in task["version"].removeprefix("v").split("_")]
        key = task["suite"], task["task"]
        if key not in last or version > last[key][0]:
            last[key] = version, task
    numbered = sorted(last.values(), key=lambda v: (int(re.search("[0-9]*$", v[1]["task"])[0] or 0), v[1]["task"]))
    return [task for _, task in numbered]


def cases_of(suite, tools, users, injections, named):
    """Pair each task of a user with each attack. Return the cases, and the retargeted cases."""
    attacks = [(t["task"], [convert(suite, tools, c) for c in t["ground_truth"]]) for t in injections if t["ground_truth"]]
    cases, retargeted = [], []
    for task in users:
        needs = [convert(suite, tools, c) for c in task["ground_truth"]]
        base = {"id": f"{suite}/{task['task']}", "suite": suite, "task": task["task"], "request": task["goal"], "needs": needs}
        base |= named("bundle", suite, "pgfsm.yaml") | named("grant", suite, "grants", task["task"] + ".yaml")
        cases += [base | {"id": f"{base['id']}/{name}", "attack": name, "wants": wants} for name, wants in attacks]
        if not attacks and needs:
            cases.append(base)
        retargeted += retarget(base)
    return cases, retargeted


# The text of an attack in a result.
INJECTED = re.compile("<INFORMATION>.*?</INFORMATION>", re.DOTALL)


def read_sessions(path):
    """Return the sessions of a file, by suite and task."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        sessions = [json.loads(line) for line in lines]
    return {(s["suite"], s["task"].replace("user_task_", "UserTask")): s for s in sessions}


def recorded(suite, calls, results):
    """Return calls with the arguments and results that AgentDojo's environment gave."""
    return [{"server": suite, "tool": c["tool"], "args": {k: v for k, v in sorted(c["args"].items()) if v is not None},
             "result": r} for c, r in zip(calls, results, strict=True)]


def in_session(case, session):
    """Return a case of a task with the request and the calls of its session, if this has the same calls."""
    calls = recorded(case["suite"], session["calls"], [c["result"] for c in session["calls"]])
    same = [c["tool"] for c in calls] == [c["tool"] for c in case["needs"]]
    return case | {"request": session["request"]} | ({"needs": calls} if same else {})


def values_of(value):
    """Return the texts and numbers in a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if parts is not None:
        return [v for part in parts for v in values_of(part)]
    return [str(value)] if value and not isinstance(value, bool) else []


def replace_injected(results, texts):
    """Replace the text of the attack in results: the first place gets the first text, and so on, again and again."""
    supply = itertools.cycle(texts)

    def replaced(value):
        if isinstance(value, dict):
            return {k: replaced(v) for k, v in value.items()}
        if isinstance(value, list):
            return [replaced(v) for v in value]
        return INJECTED.sub(lambda _: next(supply), value) if isinstance(value, str) else value

    return replaced(results)


def attacked(case, session, adaptive):
    """Return the case with its session, for each attacker."""
    name = case["attack"].replace("InjectionTask", "injection_task_")
    att = session["att"][name]
    wants = [c | ({} if w["error"] is None else {"failed": True}) for c, w in
             zip(recorded(case["suite"], att["wants"], [w["result"] for w in att["wants"]]), att["wants"])]
    targets = {v for w in wants for n, a in w["args"].items() if n in TARGETS - {"amount"} for v in values_of(a)} or {"none"}
    values = [v for w in wants for v in values_of(w["args"])]
    results = {
        "static": att["results"],
        "knows": adaptive["att"].get(name, att["results"]),
        "whole": replace_injected(att["results"], sorted(targets, key=lambda v: (-len(v), v))),
        "splits": replace_injected(att["results"], ["\n".join(" ".join(v) for v in values)]),
    }
    case = in_session(case, session) | {"wants": wants}
    before = {attacker: recorded(case["suite"], att["benign"], r) for attacker, r in results.items()}
    return {attacker: case | ({"before": calls} if calls else {}) for attacker, calls in before.items()}


def write_sessions(data, out, cases):
    """Write the cases with the sessions of their tasks: one file for each attacker, and the retargeted writes."""
    sessions, adaptive = read_sessions(data / "sessions.jsonl.gz"), read_sessions(data / "adaptive.jsonl.gz")
    versions, tasks = [], {}
    for case in cases:
        key = case["suite"], case["task"]
        if "attack" in case:
            versions.append(attacked(case, sessions[key], adaptive[key]))
        task = {k: v for k, v in case.items() if k not in ("attack", "wants")} | {"id": "/".join(key)}
        tasks[key] = in_session(task, sessions[key])
    for attacker in versions[0]:
        write_lines(out / f"all.sessions-{attacker}.jsonl", [v[attacker] for v in versions])
    write_lines(out / "all.sessions-retargeted.jsonl", [c for task in tasks.values() for c in retarget(task)])


def write_lines(path, cases):
    lines = (json.dumps(c, ensure_ascii=False, separators=(",", ":")) + "\n" for c in cases)
    path.write_text("".join(lines), encoding="utf-8")


def write_suite(out, name, servers, cases, retargeted):
    text = json.dumps({"servers": servers}, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    (out / (name + ".tools.json")).write_text(text, encoding="utf-8")
    write_lines(out / (name + ".cases.jsonl"), cases)
    write_lines(out / (name + ".retargeted.jsonl"), retargeted)
    print(f"{name}: {len(cases)} cases, {len(retargeted)} retargeted")


def main(data, out, bundles=pathlib.Path(__file__).parent):
    data, out, bundles = pathlib.Path(data), pathlib.Path(out), pathlib.Path(bundles)

    def read(name):
        return json.loads((data / name).read_text(encoding="utf-8"))

    def named(member, *parts):
        path = bundles.joinpath(*parts)
        return {member: pathlib.Path(os.path.relpath(path, out)).as_posix()} if path.is_file() else {}

    catalog = read("tools.json")
    users = last_versions(read("user_tasks.json"), "user")
    injections = last_versions(read("injection/injection_tasks.json"), "injection")

    out.mkdir(parents=True, exist_ok=True)
    all_servers, all_cases, all_retargeted = {}, [], []
    for suite, names in sorted(catalog["suites"].items()):
        servers = {suite: {"tools": [definition(name, catalog["tools"][name]) for name in names]}}
        own_users = [t for t in users if t["suite"] == suite]
        own_injections = [t for t in injections if t["suite"] == suite]
        cases, retargeted = cases_of(suite, catalog["tools"], own_users, own_injections, named)
        write_suite(out, suite, servers, cases, retargeted)

        all_servers |= servers
        all_cases += cases
        all_retargeted += retargeted
    write_suite(out, "all", all_servers, all_cases, all_retargeted)
    if (data / "sessions.jsonl.gz").is_file():
        write_sessions(data, out, all_cases)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
