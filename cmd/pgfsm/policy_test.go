package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/states/statestest"
)

// The configuration of the tests below.
const (
	policyConfig = `version: 1
env: prod
servers:
  ledger: {type: http, url: "http://127.0.0.1:9/mcp"}
allowlist: allowlist.json
risk: risk.yaml
policy: policy.yaml
roles: {owners: ["local:bob"], tellers: ["local:alice"]}
`
	policyConfigRisk = `version: 1
rules:
  - {id: large, when: {args: {amount: {gt: 1000}}}, set_mode: review, reason: A large amount.}
  - {id: rate, when: {tool: transfer}, score_expr: "args.amount / args.parts", reason: By part.}
`
	policyConfigPolicy = `version: 1
policies:
  - {id: trial, effect: deny, mode: shadow}
  - {id: others, match: {server: mail}, effect: deny}
  - id: transfers
    match: {server: ledger, tool: "transfer*"}
    effect: allow
    deny: risk.score > 900
    require_approval_if: risk.mode != 'safe'
    approvers: [owners]
    quorum: 2
    expires: 1h
    reason: Money moves.
`
	policyTests = `tests:
  - {name: small, input: {server: ledger, tool: transfer, args: {amount: 5, parts: 1}, actor: "local:alice"}, expect: allow, expect_policy: transfers}
  - {name: large, input: {server: ledger, tool: transfer, args: {amount: 2000, parts: 4}}, expect: pending}
`
)

func policyFolder(t *testing.T) (dir, config string) {
	dir = cli.Folder(t, "pgfsm.yaml", policyConfig, "risk.yaml", policyConfigRisk, "policy.yaml", policyConfigPolicy,
		"allowlist.json", `{"ledger": ["transfer"]}`, "tests.yaml", policyTests,
		"wrong/tests.yaml", strings.Replace(policyTests, "expect: allow", "expect: deny", 1))
	return dir, filepath.Join(dir, "pgfsm.yaml")
}

func TestPolicyExplainDocument(t *testing.T) {
	_, config := policyFolder(t)
	explain := func(args ...string) cli.Result {
		return command(t.Context(), nil, slices.Concat([]string{"policy", "explain", "-c", config, "--json", "--server", "ledger"}, args)...)
	}
	held := explain("--tool", "transfer", "--args", `{"amount":2000,"parts":4}`, "--actor", "local:alice")
	held.Want(t, exitCould, "/schema_version", fmt.Sprint(schemaVersion), "/decision", "unknown", "/code", "",
		"/gates/2/gate", "server", "/gates/2/verdict", "unknown", "/gates/3/verdict", "allow", "/gates/4/verdict", "unknown",
		"/gates/6/verdict", "pending", "/gates/6/code", "approval_required", "/gates/6/reason", `Policy \"transfers\": Money moves.`,
		"/policy", "transfers", "/condition", "require_approval_if",
		"/risk_mode", "review", "/risk_score", "500", "/approvers/0", "owners", "/quorum", "2",
		"/risk/0/rule", "large", "/risk/0/matched", "true", "/risk/0/mode", "review", "/risk/0/score", "50", "/risk/0/reason", "A large amount.",
		"/risk/1/rule", "rate", "/risk/1/score", "500", "/risk/1/failed", "", "/risk/2", "",
		"/policies/0/policy", "trial", "/policies/0/shadow", "true", "/policies/0/matched", "true",
		"/policies/1/policy", "others", "/policies/1/matched", "false", "/policies/1/why", `the server \"ledger\" is not \"mail\`,
		"/policies/2/policy", "transfers", "/policies/2/matched", "true", "/policies/3", "",
		"/shadow/0/policy", "trial", "/shadow/0/effect", "deny")
	if expires := held.Member("/expires"); len(expires) != len(statestest.At) {
		t.Errorf("/expires = %q, want a time like %s", expires, statestest.At)
	}
	explain("--tool", "transfer", "--args", `{"amount":2000}`).Want(t, exitNo, "/decision", "deny", "/code", "policy_denied",
		"/condition", "deny", "/risk_mode", "danger", "/risk_score", "1000", "/approvers", "", "/quorum", "", "/expires", "")
	explain("--tool", "transfer", "--args", `{"amount":10,"parts":2}`).Want(t, exitCould, "/decision", "unknown", "/gates/6/verdict", "allow",
		"/policy", "transfers")
	explain("--tool", "nothing").Want(t, exitNo, "/decision", "deny", "/code", "tool_not_allowed", "/policy", "", "/policies/2/matched", "false")
}

func TestPolicyTestDocument(t *testing.T) {
	dir, config := policyFolder(t)
	good := command(t.Context(), nil, "policy", "test", "-c", config, "--json", filepath.Join(dir, "tests.yaml"))
	good.Want(t, exitYes, "/schema_version", fmt.Sprint(schemaVersion), "/ok", "true", "/tests/0/name", "small", "/tests/0/ok", "true",
		"/tests/0/got", "allow", "/tests/0/want", "allow", "/tests/0/policy", "transfers", "/tests/0/want_policy", "transfers",
		"/tests/0/line", "2", "/tests/0/file", filepath.ToSlash(filepath.Join(dir, "tests.yaml")),
		"/tests/1/name", "large", "/tests/1/got", "pending", "/tests/1/line", "3", "/tests/2", "",
		"/uncovered/policies_without_a_test/0", "others", "/uncovered/policies_without_a_test/1", "",
		"/uncovered/risk_rules_without_a_test", "[]")
	bad := command(t.Context(), nil, "policy", "test", "-c", config, "--json", filepath.Join(dir, "wrong"))
	bad.Want(t, exitNo, "/ok", "false", "/tests/0/ok", "false", "/tests/0/got", "allow", "/tests/0/want", "deny", "/tests/1/ok", "true")
	all := command(t.Context(), nil, "policy", "test", "-c", config, "--json", dir)
	all.Want(t, exitNo, "/ok", "false", "/tests/3/ok", "true", "/tests/4", "")
}
