package runner_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// evaluationOf is an evaluation about a command, in the name of a subject.
func evaluationOf(subject, command string) string {
	return fmt.Sprintf(`{"subject":{"type":"identity","id":%q},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"claude__Bash"},`+
		`"context":{"agent":"a","arguments":{"command":%q}}}`, subject, command)
}

// requestOf is the access request after a denied evaluation.
func requestOf(asked string, d azDecision) string {
	return strings.TrimSuffix(asked, "}") + fmt.Sprintf(`,"denial":{"evaluation_id":%q,"expires_at":%q,"reason":%q}}`,
		d.Context.EvaluationID, d.Context.AccessRequest.ExpiresAt.Format(policy.TimeForm), d.Context.Reason)
}

// byCommand allows ls, holds make, and denies all other commands.
func byCommand() *rules.Content {
	return statestest.Policies(
		rules.Policy{ID: "look", Effect: rules.Allow, Reason: "Fine.", When: "has(args.command) && args.command == 'ls'"},
		rules.Policy{ID: "build", Effect: rules.Pending, Reason: "A person looks.", When: "has(args.command) && args.command == 'make'",
			Expires: time.Hour.Milliseconds()},
		rules.Policy{ID: "all-servers", Effect: rules.Allow, Reason: "Fine.", Match: rules.Match{Server: kb}},
	)
}

// TestAuthZENMetadata: the metadata needs no token, and names the endpoints.
func TestAuthZENMetadata(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	p := newEnforcementPoint(t, s.mcp, "")
	if p.meta.Evaluation != s.mcp+"/access/v1/evaluation" || p.meta.Evaluations != s.mcp+"/access/v1/evaluations" ||
		p.meta.Requests != s.mcp+"/access/v1/requests" || len(p.meta.Can) != 1 {
		t.Errorf("the metadata is %+v", p.meta)
	}
}

// TestAuthZENDecides: the decision follows from the call, and whatever is no call of a tool is denied.
func TestAuthZENDecides(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	good := evaluationOf("ann", "ls")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, tc := range []struct {
		name, body, reason string
		allowed            bool
	}{
		{"allowed", good, "", true},
		{"denied-by-default", evaluationOf("ann", "rm -rf /"), "policy_denied", false},
		{"held", evaluationOf("ann", "make"), "approval_required", false},
		{"the-other-names-of-the-action-and-the-resource", strings.NewReplacer("tools/call", "call", `"tool"`, `"mcp_tool"`).Replace(good), "", true},
		{"a-server-in-the-properties", replace(`"id":"claude__Bash"`, `"id":"Bash","properties":{"server":"claude"}`), "", true},
		{"a-tool-of-an-mcp-server", `{"subject":{"type":"identity","id":"ann"},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"` + kb +
			`__fetch_policy_entry"},"context":{"arguments":{"policy_id":"policy-002"}}}`, "", true},
		{"arguments-of-the-resource", replace(`"id":"claude__Bash"},"context":{"agent":"a","arguments":{"command":"ls"}}`,
			`"id":"claude__Bash","properties":{"arguments":{"command":"ls"}}}`), "", true},
		{"unknown-members", replace(`{"subject"`, `{"foo":"bar","future":{"a":[1]},"subject"`), "", true},
		{"properties-of-the-subject", replace(`"type":"identity"`, `"type":"identity","properties":{"role":"admin"}`), "", true},
		{"no-arguments", replace(`,"arguments":{"command":"ls"}`, ""), "arguments_missing", false},
		{"arguments-twice", replace(`"id":"claude__Bash"`, `"id":"claude__Bash","properties":{"arguments":{"command":"ls"}}`), "arguments_ambiguous", false},
		{"arguments-that-are-no-object", replace(`{"command":"ls"}`, `["ls"]`), "arguments_missing", false},
		{"arguments-that-are-null", replace(`{"command":"ls"}`, `null`), "arguments_missing", false},
		{"arguments-of-another-type", replace(`"ls"`, `1`), "arguments_invalid", false},
		{"an-unknown-argument", replace(`"command"`, `"Command"`), "arguments_invalid", false},
		{"another-action", replace("tools/call", "tools/list"), "action_unknown", false},
		{"another-case", replace("tools/call", "Tools/Call"), "action_unknown", false},
		{"another-resource", replace(`"tool"`, `"record"`), "resource_unknown", false},
		{"no-server", replace("claude__Bash", "Bash"), "resource_unknown", false},
		{"an-empty-server", replace("claude__Bash", "__Bash"), "resource_unknown", false},
		{"a-server-that-is-no-text", replace(`"id":"claude__Bash"`, `"id":"Bash","properties":{"server":["claude"]}`), "resource_unknown", false},
		{"an-unknown-server", replace("claude__", "cursor__"), "server_unknown", false},
		{"an-unknown-tool", replace("claude__Bash", "claude__Rm"), "tool_unknown", false},
		{"another-subject", evaluationOf("bob", "ls"), "subject_refused", false},
		{"a-subject-of-an-unknown-issuer", evaluationOf("https://idp.example#bob", "ls"), "subject_refused", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.t = t
			d := p.evaluate(tc.body)
			if *d.Decision != tc.allowed || d.Context.Reason != tc.reason || !tc.allowed && d.Context.ReasonUser["en"] == "" {
				t.Errorf("the decision is %t %+v, want %t for %q", *d.Decision, d.Context, tc.allowed, tc.reason)
			}
			if requestable := d.Context.AccessRequest != nil; requestable != (tc.reason == "approval_required") {
				t.Errorf("access_request is there: %t", requestable)
			}
		})
	}
	s.sound()
}

// TestAuthZENCounts: each evaluation is a run of its own that counts as made, and ends as unreported.
func TestAuthZENCounts(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	first, second := p.evaluate(evaluationOf("ann", "ls")), p.evaluate(evaluationOf("ann", "ls"))
	if first.Context.EvaluationID == second.Context.EvaluationID {
		t.Error("two evaluations have one run")
	}
	for _, run := range []string{first.Context.EvaluationID, second.Context.EvaluationID} {
		q := request(t, s.ledger, run)
		if q.Kind != "evaluation" || q.Status != ledger.Delegated || q.Sent == "" || q.Actor != "ann" {
			t.Errorf("the run is %+v, want an evaluation of ann that was delegated", q)
		}
	}
	s.sound()
}

// TestAuthZENEvaluations: several evaluations have defaults and one of three semantics, and their order is that of the request.
func TestAuthZENEvaluations(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	const defaults = `"subject":{"type":"identity","id":"ann"},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"claude__Bash"},` +
		`"context":{"arguments":{"command":"ls"}}`
	const no = `{"context":{"arguments":{"command":"rm"}}}`
	for _, tc := range []struct {
		name, body string
		want       []bool
	}{
		{"all", `{` + defaults + `,"evaluations":[{},` + no + `,{}]}`, []bool{true, false, true}},
		{"all-by-name", `{` + defaults + `,"options":{"evaluations_semantic":"execute_all","x":1},"evaluations":[` + no + `,{}]}`, []bool{false, true}},
		{"deny-on-first-deny", `{` + defaults + `,"options":{"evaluations_semantic":"deny_on_first_deny"},"evaluations":[{},` + no + `,{}]}`,
			[]bool{true, false}},
		{"permit-on-first-permit", `{` + defaults + `,"options":{"evaluations_semantic":"permit_on_first_permit"},"evaluations":[` + no + `,{},{}]}`,
			[]bool{false, true}},
		{"no-defaults", `{"evaluations":[` + evaluationOf("ann", "ls") + `,` + evaluationOf("ann", "rm") + `]}`, []bool{true, false}},
		{"an-entity-replaces-the-default", `{` + defaults + `,"evaluations":[{"resource":{"type":"tool","id":"claude__Rm"}},{}]}`, []bool{false, true}},
		{"one-that-lacks-a-member", `{"subject":{"type":"identity","id":"ann"},"evaluations":[{},` + evaluationOf("ann", "ls") + `]}`, []bool{false, true}},
		{"one-of-a-wrong-type", `{` + defaults + `,"evaluations":[{"action":1},1,null,"x",{}]}`, []bool{false, false, false, false, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.t = t
			all := p.evaluateAll(tc.body)
			got := make([]bool, len(all))
			for i := range all {
				got[i] = *all[i].Decision
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("the decisions are %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("none-is-one-evaluation", func(t *testing.T) {
		for _, end := range []string{`}`, `,"evaluations":[]}`, `,"evaluations":null}`} {
			response, text := p.send(http.MethodPost, p.meta.Evaluations, `{`+defaults+end)
			if response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"decision":true`) {
				t.Errorf("the answer is %d %s, want one decision", response.StatusCode, text)
			}
		}
	})
	s.sound()
}

// TestAuthZENTakesNoLongerThanARun: several evaluations share the time of one run. Those after it are denied.
func TestAuthZENTakesNoLongerThanARun(t *testing.T) {
	t.Parallel()
	s := &hookStage{stage: newClientStage(t, byCommand())}
	content := *s.options.Bundle.Content()
	content.Limits.RunTimeout = 1
	s.options.Bundle = statestest.MustBundle(content, nil)
	s.ledger = s.open()
	o := s.options
	o.Ledger = s.ledger
	s.mcp, _ = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	p := newEnforcementPoint(t, s.mcp, newToken(t, s.ledger, "ann", ledger.RoleHook))
	one := evaluationOf("ann", "ls")
	all := p.evaluateAll(`{"evaluations":[` + strings.Repeat(one+",", 99) + one + `]}`)
	if len(all) != 100 || *all[99].Decision {
		t.Errorf("there are %d decisions, and the last is %+v, want 100 and a denial", len(all), all[len(all)-1].Context)
	}
	s.sound()
}

// TestAuthZENRefuses: a request that cannot be read gets a status and a text that says what is wrong, and is recorded nowhere.
func TestAuthZENRefuses(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	good := evaluationOf("ann", "ls")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	many := `{"evaluations":[` + strings.Repeat(good+",", 999) + good + `]}`
	agent := newToken(t, s.ledger, "ann", ledger.RoleAgent)
	before := events(t, s.ledger)
	for _, tc := range []struct {
		name, url, body, want string
		status                int
		header                []string
	}{
		{"no-token", p.meta.Evaluation, good, "token", 401, []string{"Authorization", "Bearer pgfsm_x"}},
		{"a-token-of-an-agent", p.meta.Evaluation, good, "token", 401, []string{"Authorization", "Bearer " + agent}},
		{"another-type", p.meta.Evaluation, good, "application/json", 400, []string{"Content-Type", "text/plain"}},
		{"empty", p.meta.Evaluation, "", "too early", 400, nil},
		{"no-json", p.meta.Evaluation, "{", "strict JSON", 400, nil},
		{"two-texts", p.meta.Evaluation, good + good, "JSON", 400, nil},
		{"no-object", p.meta.Evaluation, `["x"]`, "object", 400, nil},
		{"null", p.meta.Evaluation, `null`, "object", 400, nil},
		{"no-subject", p.meta.Evaluation, replace(`"subject"`, `"Subject"`), "subject is missing", 400, nil},
		{"no-subject-type", p.meta.Evaluation, replace(`"type":"identity",`, ``), "subject.type is missing", 400, nil},
		{"no-subject-id", p.meta.Evaluation, evaluationOf("", "ls"), "subject.id is missing", 400, nil},
		{"no-action", p.meta.Evaluation, replace(`"action"`, `"x"`), "action is missing", 400, nil},
		{"no-action-name", p.meta.Evaluation, replace(`"name"`, `"nom"`), "action.name is missing", 400, nil},
		{"no-resource", p.meta.Evaluation, replace(`"resource"`, `"x"`), "resource is missing", 400, nil},
		{"no-resource-type", p.meta.Evaluation, replace(`"type":"tool",`, ``), "resource.type is missing", 400, nil},
		{"no-resource-id", p.meta.Evaluation, replace(`,"id":"claude__Bash"`, ``), "resource.id is missing", 400, nil},
		{"a-subject-that-is-a-text", p.meta.Evaluation, replace(`{"type":"identity","id":"ann"}`, `"ann"`), "subject has a wrong type", 400, nil},
		{"an-action-name-that-is-a-number", p.meta.Evaluation, replace(`"tools/call"`, `1`), "action.name has a wrong type", 400, nil},
		{"properties-that-are-a-list", p.meta.Evaluation, replace(`"id":"ann"`, `"id":"ann","properties":[]`), "subject.properties has a wrong type", 400, nil},
		{"a-context-that-is-a-text", p.meta.Evaluation, replace(`"context":{"agent":"a","arguments":{"command":"ls"}}`, `"context":"x"`),
			"context has a wrong type", 400, nil},
		{"a-member-twice", p.meta.Evaluation, replace(`"subject"`, `"subject":{"type":"identity","id":"bob"},"subject"`), "duplicate", 400, nil},
		{"a-member-of-the-arguments-twice", p.meta.Evaluation, replace(`"command"`, `"command":"rm","command"`), "duplicate", 400, nil},
		{"invalid-utf8", p.meta.Evaluation, replace("ls", "l\xff"), "UTF-8", 400, nil},
		{"deep", p.meta.Evaluation, replace(`"a"`, strings.Repeat("[", 100000)+strings.Repeat("]", 100000)), "deep", 400, nil},
		{"a-thousand-evaluations", p.meta.Evaluations, many, "at most 100", 400, nil},
		{"an-unknown-semantic", p.meta.Evaluations, `{"options":{"evaluations_semantic":"all"},"evaluations":[` + good + `]}`, "evaluations_semantic", 400, nil},
		{"evaluations-that-are-an-object", p.meta.Evaluations, `{"evaluations":{}}`, "evaluations has a wrong type", 400, nil},
		{"five-mebibytes", p.meta.Evaluation, replace("ls", strings.Repeat("x", 5<<20)), "at most", 413,
			[]string{"Expect", "100-continue"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.t = t
			response, text := p.send(http.MethodPost, tc.url, tc.body, tc.header...)
			if response.StatusCode != tc.status || !strings.Contains(string(text), tc.want) {
				t.Errorf("the answer is %d %.300s, want %d with %q", response.StatusCode, text, tc.status, tc.want)
			}
		})
	}
	if now := events(t, s.ledger); now != before {
		t.Errorf("the ledger has %v, want %v", now, before)
	}
	if d := p.evaluate(replace(`"ls"`, `"`+strings.Repeat("x", 1<<20)+`"`)); *d.Decision || d.Context.Reason == "" {
		t.Errorf("arguments of 1 MiB: %+v, want them denied", d)
	}
	s.sound()
}

// TestAuthZENAccessRequest: a held evaluation is requested, polled and, after the approval, used once by the identical evaluation.
func TestAuthZENAccessRequest(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	asked := evaluationOf("ann", "make")
	d := p.evaluate(asked)
	if *d.Decision || d.Context.AccessRequest == nil || d.Context.AccessRequest.Endpoint != p.meta.Requests {
		t.Fatalf("the decision is %+v, want a denial that can be requested", d.Context)
	}
	if again := p.evaluate(asked); again.Context.EvaluationID != d.Context.EvaluationID {
		t.Errorf("the same evaluation again has the run %s, want %s", again.Context.EvaluationID, d.Context.EvaluationID)
	}

	body := requestOf(asked, d)
	submitted := p.task(p.meta.Requests, body, http.StatusAccepted)
	if again := p.task(p.meta.Requests, body, http.StatusAccepted); again.Task != submitted.Task {
		t.Errorf("the same request again has the task %+v, want %+v", again.Task, submitted.Task)
	}
	status := submitted.Task.StatusEndpoint
	if pending := p.task(status, "", http.StatusOK); pending.Task.Status != "pending" || pending.Result != nil {
		t.Errorf("the task is %+v, want it pending", pending)
	}
	other := *p
	other.token = newToken(t, s.ledger, "bob", ledger.RoleHook)
	other.task(status, "", http.StatusNotFound)

	run := d.Context.EvaluationID
	vote(t, s.ledger, run, request(t, s.ledger, run).Binding, token(t, s.ledger, "carol", ledger.RoleApprover), true)
	approved := p.task(status, "", http.StatusOK)
	if approved.Task.Status != "approved" || approved.Result == nil || approved.Result.Mode != "reevaluate" {
		t.Fatalf("the task is %+v, want it approved", approved)
	}
	again := strings.Replace(asked, `"agent":"a"`, `"approval":`+string(approved.Result.Approval), 1)
	if changed := p.evaluate(evaluationOf("ann", "make ")); *changed.Decision {
		t.Error("another call after the approval is allowed")
	}
	// Of many concurrent evaluations, one uses the approval.
	var permits atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, text := p.send(http.MethodPost, p.meta.Evaluation, again); strings.Contains(string(text), `"decision":true`) {
				permits.Add(1)
			}
		})
	}
	all.Wait()
	if n := permits.Load(); n != 1 {
		t.Errorf("%d evaluations are permitted, want 1", n)
	}
	s.want(run, ledger.Delegated, "", ledger.DecisionMade, ledger.CallDelegated)
	if used := p.task(status, "", http.StatusOK); used.Task.Status != "approved" {
		t.Errorf("the task is %+v, want it to stay approved", used)
	}
	s.sound()
}

// TestAuthZENAccessDenied: a task says that approvers denied the request, and the identical evaluation is told so once.
func TestAuthZENAccessDenied(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	d := p.evaluate(evaluationOf("ann", "make"))
	run := d.Context.EvaluationID
	status := p.task(p.meta.Requests, requestOf(evaluationOf("ann", "make"), d), http.StatusAccepted).Task.StatusEndpoint
	vote(t, s.ledger, run, request(t, s.ledger, run).Binding, token(t, s.ledger, "carol", ledger.RoleApprover), false)
	ends(t, s.ledger, run)
	if denied := p.task(status, "", http.StatusOK); denied.Task.Status != "denied" || denied.Result != nil {
		t.Errorf("the task is %+v, want it denied", denied)
	}
	if told := p.evaluate(evaluationOf("ann", "make")); *told.Decision || told.Context.Reason != "approval_denied" || told.Context.EvaluationID != run {
		t.Errorf("the evaluation after the denial is %+v", told.Context)
	}
	if next := p.evaluate(evaluationOf("ann", "make")); *next.Decision || next.Context.EvaluationID == run || next.Context.AccessRequest == nil {
		t.Errorf("the next evaluation is %+v, want a new one that is held", next.Context)
	}
	s.sound()
}

// TestAuthZENRefusesAccessRequests: a request that is not about the held evaluation of the token's subject has no task.
func TestAuthZENRefusesAccessRequests(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, byCommand())
	p := newEnforcementPoint(t, s.mcp, s.token)
	asked := evaluationOf("ann", "make")
	good := requestOf(asked, p.evaluate(asked))
	allowed := p.evaluate(evaluationOf("ann", "ls"))
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	const binding = "urn:openid:authzen:access-request:error:invalid_denial_binding"
	for _, tc := range []struct{ name, body, problem string }{
		{"no-json", `{`, "about:blank"},
		{"no-denial", asked, binding},
		{"a-denial-that-is-a-text", strings.TrimSuffix(asked, "}") + `,"denial":"x"}`, "about:blank"},
		{"an-unknown-evaluation", replace(`"evaluation_id":"`, `"evaluation_id":"0`), binding},
		{"an-evaluation-that-was-not-held", strings.TrimSuffix(evaluationOf("ann", "ls"), "}") + `,"denial":{"evaluation_id":"` + allowed.Context.EvaluationID + `"}}`,
			"urn:openid:authzen:access-request:error:not_requestable"},
		{"another-subject", replace(`"ann"`, `"bob"`), binding},
		{"other-arguments", replace(`"command":"make"`, `"command":"make install"`), binding},
		{"no-arguments", replace(`"arguments"`, `"x"`), binding},
		{"another-tool", replace("claude__Bash", "claude__Read"), binding},
		{"another-action", replace("tools/call", "tools/list"), binding},
		{"another-expiry", replace(`"expires_at":"2`, `"expires_at":"3`), binding},
		{"items", replace(`{"subject"`, `{"items":[],"subject"`), "about:blank"},
		{"a-callback", replace(`{"subject"`, `{"callback":{"endpoint":"https://pep.example.com"},"subject"`), "about:blank"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := *p
			p.t = t
			if a := p.task(p.meta.Requests, tc.body, http.StatusBadRequest); a.Type != tc.problem {
				t.Errorf("the problem is %q, want %q", a.Type, tc.problem)
			}
		})
	}
	p.task(p.meta.Requests+"/"+allowed.Context.EvaluationID, "", http.StatusNotFound)
	p.task(p.meta.Requests+"/..%2Fx", "", http.StatusNotFound)
}

// TestAuthZENSubjects: an agent of an identity provider speaks for itself, and for others of its issuer only if it is one of identity.speakers.
func TestAuthZENSubjects(t *testing.T) {
	t.Parallel()
	idp := identitytest.New(t)
	s := &hookStage{stage: newClientStage(t, byCommand())}
	s.ledger = s.open()
	o := s.options
	o.Ledger = s.ledger
	if err := s.ledger.RecordActivation(t.Context(), o.Bundle, ledger.ActivationReason{
		Cause: ledger.CauseStart, Settings: ledger.Settings{Issuers: []string{idp.Issuer}, May: new(ledger.May{})},
	}); err != nil {
		t.Fatal(err)
	}
	o.Identity = &runner.Identity{
		Issuers:  []string{idp.Issuer},
		Speakers: []string{idp.Issuer + "#mesh"},
		Providers: identity.New(identity.Options{Now: idp.Now, Issuers: []identity.Issuer{
			{URL: idp.Issuer, Audiences: identity.Audiences{MCP: []string{"gateway"}}, TokenTypes: []string{"at+jwt"}, People: []string{"people"}},
		}}),
	}
	s.mcp, _ = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	sign := func(sub, client string, more map[string]any) string {
		claims := map[string]any{"iss": idp.Issuer, "aud": "gateway", "sub": sub, "client_id": client,
			"iat": idp.Now().Unix(), "exp": idp.Now().Add(time.Hour).Unix()}
		for name, value := range more {
			claims[name] = value
		}
		return idp.Sign(claims, identitytest.Type("at+jwt"))
	}
	mesh, robot := sign("mesh", "mesh", nil), sign("robot", "robot", nil)
	acting := sign("ann", "robot", map[string]any{"act": map[string]any{"sub": "robot"}})
	for _, tc := range []struct {
		name, token, subject, behalf string
		allowed                      bool
	}{
		{"for-itself", robot, idp.Issuer + "#robot", "", true},
		{"for-itself-without-the-issuer", robot, "robot", "", true},
		{"for-another", robot, "ann", "", false},
		{"a-speaker-for-itself", mesh, "mesh", "", true},
		{"a-speaker-for-another", mesh, "ann", idp.Issuer + "#ann", true},
		{"a-speaker-for-another-with-the-issuer", mesh, idp.Issuer + "#ann", idp.Issuer + "#ann", true},
		{"a-speaker-for-another-issuer", mesh, "https://other.example#ann", "", false},
		{"a-speaker-for-an-issuer-with-the-same-beginning", mesh, idp.Issuer + "2#ann", "", false},
		{"a-speaker-for-what-is-no-subject", mesh, "ann smith", "", false},
		{"a-person-as-a-speaker", sign("mesh", "people", nil), "ann", "", false},
		{"as-the-token-says", acting, "ann", idp.Issuer + "#ann", true},
		{"another-than-the-token-says", acting, "bob", "", false},
		{"the-agent-instead-of-the-person", acting, "robot", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newEnforcementPoint(t, s.mcp, tc.token)
			d := p.evaluate(evaluationOf(tc.subject, "ls"))
			if *d.Decision != tc.allowed || !tc.allowed && d.Context.Reason != "subject_refused" {
				t.Fatalf("the decision is %t %+v, want %t", *d.Decision, d.Context, tc.allowed)
			}
			if !tc.allowed {
				return
			}
			if q := request(t, s.ledger, d.Context.EvaluationID); q.OnBehalfOf != tc.behalf {
				t.Errorf("the run is on behalf of %q, want %q", q.OnBehalfOf, tc.behalf)
			}
		})
	}
	t.Run("held-for-another", func(t *testing.T) {
		p := newEnforcementPoint(t, s.mcp, mesh)
		d := p.evaluate(evaluationOf("ann", "make"))
		a := p.task(p.meta.Requests, requestOf(evaluationOf("ann", "make"), d), http.StatusAccepted)
		p.task(a.Task.StatusEndpoint, "", http.StatusOK)
		p.task(p.meta.Requests, requestOf(evaluationOf("bob", "make"), d), http.StatusBadRequest)
		p.token = robot
		p.task(a.Task.StatusEndpoint, "", http.StatusNotFound)
	})
	t.Run("for-a-blocked-person", func(t *testing.T) {
		check.NoError(t, s.ledger.BlockIdentity(t.Context(), token(t, s.ledger, "root", ledger.RoleAdmin), idp.Issuer, "ann"))
		if d := newEnforcementPoint(t, s.mcp, mesh).evaluate(evaluationOf("ann", "ls")); *d.Decision {
			t.Errorf("the decision is %+v, want a denial", d.Context)
		}
	})
	t.Run("no-hook-events", func(t *testing.T) {
		if status, text := s.post(mesh, `{"kind":"end","client":"claude","session":"s"}`); status != http.StatusForbidden {
			t.Errorf("a hook event with the token of an identity provider = %d %s, want 403", status, text)
		}
	})
	s.sound()
}
