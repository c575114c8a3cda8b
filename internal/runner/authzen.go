package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/deadline"
	"pgfsm/internal/hook"
	"pgfsm/internal/identity"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/gateway/front"
	"pgfsm/policy"
	"pgfsm/states"
)

// Paths of the OpenID AuthZEN Authorization API 1.0.
const (
	pathAuthZEN     = "/.well-known/authzen-configuration"
	pathEvaluation  = "/access/v1/evaluation"
	pathEvaluations = "/access/v1/evaluations"
)

// maxEvaluations bounds the evaluations of one request.
const maxEvaluations = 100

// Reasons of decisions about evaluations that are about no call. docs/guide/authzen.md lists them.
const (
	codeEvaluationInvalid = "evaluation_invalid"
	codeActionUnknown     = "action_unknown"
	codeResourceUnknown   = "resource_unknown"
	codeArgumentsMissing  = "arguments_missing"
	codeArgumentsTwice    = "arguments_ambiguous"
	codeSubjectRefused    = "subject_refused"
)

// Values of options.evaluations_semantic.
const (
	executeAll          = "execute_all"
	denyOnFirstDeny     = "deny_on_first_deny"
	permitOnFirstPermit = "permit_on_first_permit"
)

// ownsAuthZEN reports whether AuthZEN has a method at a path, and whether without a token.
func ownsAuthZEN(method, path string) (owns, public bool) {
	switch {
	case method == http.MethodGet:
		return path == pathAuthZEN || strings.HasPrefix(path, pathRequests+"/"), path == pathAuthZEN
	case method == http.MethodPost:
		return path == pathEvaluation || path == pathEvaluations || path == pathRequests, false
	}
	return false, false
}

// An evaluation asks whether a subject may do an action on a resource.
type evaluation struct {
	Subject  *entity                   `json:"subject"`
	Action   *action                   `json:"action"`
	Resource *entity                   `json:"resource"`
	Context  map[string]jsontext.Value `json:"context"`
}

// An entity is a subject or a resource.
type entity struct {
	ID         string                    `json:"id"`
	Type       string                    `json:"type"`
	Properties map[string]jsontext.Value `json:"properties"`
}

type action struct {
	Name       string                    `json:"name"`
	Properties map[string]jsontext.Value `json:"properties"`
}

// An evaluationsRequest asks several questions. Its own members are defaults for those of the evaluations.
type evaluationsRequest struct {
	Defaults    evaluation       `json:",embed"`
	Evaluations []jsontext.Value `json:"evaluations"`
	Options     struct {
		Semantic string `json:"evaluations_semantic"`
	} `json:"options"`
}

// A decision answers an evaluation. The zero decision denies.
type decision struct {
	Context  decisionContext `json:"context,omitzero"`
	Decision bool            `json:"decision"`
}

// A decisionContext says why, in the members of AuthZEN and of its Access Request profile.
type decisionContext struct {
	AccessRequest *requestable      `json:"access_request,omitzero"`
	Error         *evaluationError  `json:"error,omitzero"`
	EvaluationID  string            `json:"evaluation_id,omitzero"` // the id of the run
	Reason        string            `json:"reason,omitzero"`        // a code
	ReasonUser    map[string]string `json:"reason_user,omitzero"`   // texts by language
}

type evaluationError struct {
	Message string `json:"message"`
	Status  int    `json:"status"`
}

type decisions struct {
	Evaluations []decision `json:"evaluations"`
}

func deny(code, reason string) decision {
	return decision{Context: decisionContext{Reason: code, ReasonUser: inEnglish(reason)}}
}

func inEnglish(text string) map[string]string {
	if text == "" {
		return nil
	}
	return map[string]string{"en": text}
}

// A decisionPoint answers one request of AuthZEN.
type decisionPoint struct {
	*ConfiguredRunner
	url  string // scheme and host of the agents' address
	from gateway.Identity
	says *policy.Identity
}

// answer answers a request at a path of AuthZEN.
func (p *decisionPoint) answer(ctx context.Context, path string, body []byte) front.Reply {
	switch path {
	case pathAuthZEN:
		return jsonReply(http.StatusOK, p.metadata())
	case pathEvaluation:
		e := new(evaluation)
		if err := readStrict(body, e); err != nil {
			return badEvaluation(err)
		}
		return p.answerEvaluation(ctx, e)
	case pathEvaluations:
		return p.answerEvaluations(ctx, body)
	case pathRequests:
		return p.answerAccessRequest(ctx, body)
	}
	return p.answerTask(ctx, strings.TrimPrefix(path, pathRequests+"/"))
}

// metadata describes the decision point.
func (p *decisionPoint) metadata() any {
	return map[string]any{
		"policy_decision_point":       p.url,
		"access_evaluation_endpoint":  p.url + pathEvaluation,
		"access_evaluations_endpoint": p.url + pathEvaluations,
		"access_request_endpoint":     p.url + pathRequests,
		"capabilities":                []string{"urn:openid:authzen:capability:access-request"},
	}
}

// badEvaluation answers a request that cannot be read: a text, as AuthZEN wants it.
func badEvaluation(err error) front.Reply {
	return jsonReply(http.StatusBadRequest, err.Error())
}

// readStrict reads strict JSON. Members that v does not have are ignored, as AuthZEN wants it.
func readStrict(doc []byte, v any) error {
	err := canonical.CheckDepth(doc, canonical.MaxDepth)
	if err == nil {
		err = json.Unmarshal(doc, v)
	}
	var wrong *json.SemanticError
	switch {
	case err == nil && jsontext.Value(doc).Kind() == jsontext.KindBeginObject:
		return nil
	case err == nil:
		return errors.New("the request is no JSON object")
	case errors.As(err, &wrong) && wrong.JSONPointer != "":
		return fmt.Errorf("%s has a wrong type: %s",
			strings.ReplaceAll(string(wrong.JSONPointer[1:]), "/", "."), wrong.JSONKind)
	case errors.As(err, &wrong):
		return errors.New("the request is no JSON object")
	}
	return canonical.Explain(err)
}

// check requires the members that every evaluation has.
func (e *evaluation) check() error {
	missing := ""
	switch {
	case e.Subject == nil:
		missing = "subject"
	case e.Subject.Type == "":
		missing = "subject.type"
	case e.Subject.ID == "":
		missing = "subject.id"
	case e.Action == nil:
		missing = "action"
	case e.Action.Name == "":
		missing = "action.name"
	case e.Resource == nil:
		missing = "resource"
	case e.Resource.Type == "":
		missing = "resource.type"
	case e.Resource.ID == "":
		missing = "resource.id"
	default:
		return nil
	}
	return fmt.Errorf("%s is missing or empty", missing)
}

func (p *decisionPoint) answerEvaluation(ctx context.Context, e *evaluation) front.Reply {
	if err := e.check(); err != nil {
		return badEvaluation(err)
	}
	return jsonReply(http.StatusOK, p.evaluate(ctx, e))
}

// answerEvaluations evaluates in the order of the request, one after the other, and in the time of one run.
func (p *decisionPoint) answerEvaluations(ctx context.Context, body []byte) front.Reply {
	q := new(evaluationsRequest)
	if err := readStrict(body, q); err != nil {
		return badEvaluation(err)
	}
	stop := func(bool) bool { return false }
	switch semantic := cmp.Or(q.Options.Semantic, executeAll); {
	case len(q.Evaluations) > maxEvaluations:
		return badEvaluation(fmt.Errorf("evaluations has %d items, and at most %d are allowed: send several requests",
			len(q.Evaluations), maxEvaluations))
	case semantic == denyOnFirstDeny:
		stop = func(allowed bool) bool { return !allowed }
	case semantic == permitOnFirstPermit:
		stop = func(allowed bool) bool { return allowed }
	case semantic != executeAll:
		return badEvaluation(fmt.Errorf("options.evaluations_semantic is none of %s, %s, %s",
			executeAll, denyOnFirstDeny, permitOnFirstPermit))
	}
	if len(q.Evaluations) == 0 {
		return p.answerEvaluation(ctx, &q.Defaults)
	}

	ctx, cancel := deadline.Within(ctx, p.runTimeout())
	defer cancel()
	var answers decisions
	for _, item := range q.Evaluations {
		answer := p.evaluateItem(ctx, &q.Defaults, item)
		answers.Evaluations = append(answers.Evaluations, answer)
		if stop(answer.Decision) {
			break
		}
	}
	return jsonReply(http.StatusOK, answers)
}

// evaluateItem evaluates one of several evaluations. One that cannot be read is denied.
func (p *decisionPoint) evaluateItem(ctx context.Context, defaults *evaluation, item jsontext.Value) decision {
	e := new(evaluation)
	err := readStrict(item, e)
	if err == nil {
		e.Subject, e.Action = cmp.Or(e.Subject, defaults.Subject), cmp.Or(e.Action, defaults.Action)
		e.Resource = cmp.Or(e.Resource, defaults.Resource)
		if e.Context == nil {
			e.Context = defaults.Context
		}
		err = e.check()
	}
	if err != nil {
		denied := deny(codeEvaluationInvalid, "")
		denied.Context.Error = &evaluationError{Message: err.Error(), Status: http.StatusBadRequest}
		return denied
	}
	return p.evaluate(ctx, e)
}

// evaluate decides about a call. The caller makes it if the decision is true, so it counts as made.
func (p *decisionPoint) evaluate(ctx context.Context, e *evaluation) decision {
	call, denied := e.call()
	if denied != nil {
		return *denied
	}
	from, says, ok := p.speakFor(e.Subject.ID)
	if !ok {
		return deny(codeSubjectRefused, fmt.Sprintf("This token does not speak for the subject: it speaks for %q, "+
			"and for others of its identity provider if identity.speakers lists its actor.", ownSubject(p.from)))
	}
	if !slices.Contains(p.Bundle.Servers(), call.server) {
		return p.decisionOf(ctx, p.answerDenied("", string(policy.CodeServerUnknown),
			fmt.Sprintf("The configuration has no server %q.", call.server)))
	}
	call.kind, call.from, call.identity = states.KindEvaluation, from, says
	return p.decisionOf(ctx, p.delegate(ctx, call))
}

// decisionOf returns the machine's answer in the form of AuthZEN.
func (p *decisionPoint) decisionOf(ctx context.Context, answer hook.Answer) decision {
	d := decision{
		Decision: answer.Allowed,
		Context: decisionContext{
			EvaluationID: answer.Run,
			Reason:       answer.Code,
			ReasonUser:   inEnglish(answer.Reason),
		},
	}
	if answer.Code != string(policy.CodeApprovalRequired) || answer.Run == "" {
		return d
	}
	// Without the row, the denial stands; only the way to a decision is missing.
	if q, err := p.runner.readRequest(ctx, answer.Run); err == nil && q.Expires != "" {
		d.Context.AccessRequest = &requestable{Endpoint: p.url + pathRequests, ExpiresAt: q.Expires}
	}
	return d
}

// ownSubject is the subject for which a token speaks by itself.
func ownSubject(from gateway.Identity) string { return cmp.Or(from.OnBehalfOf, from.Name) }

// speakFor returns the identity with which a call for a subject is judged. ok is false if the token does not speak
// for the subject. A subject without an issuer is one of the token's issuer.
func (p *decisionPoint) speakFor(subject string) (from gateway.Identity, says *policy.Identity, ok bool) {
	from, own := p.from, ownSubject(p.from)
	if subject == own {
		return from, p.says, true
	}
	if !policy.HasSubject(from.Name) {
		return from, nil, false
	}
	issuer, _, _ := strings.Cut(from.Name, "#")
	if !policy.HasSubject(subject) {
		subject = policy.SubjectName(issuer, subject)
	}
	id, same := strings.CutPrefix(subject, policy.SubjectName(issuer, ""))
	switch {
	case subject == own:
		return from, p.says, true
	case !same || !identity.ValidSubject(id) || from.OnBehalfOf != "" || !p.Identity.speaks(p.says, from.Name):
		return from, nil, false
	}
	spoken := *p.says
	spoken.OnBehalfOf, from.OnBehalfOf = subject, subject
	return from, &spoken, true
}

// call returns the call that an evaluation is about: the default mapping of COAZ-MCP for tools/call, with the
// server and the arguments. A decision says why there is none.
func (e *evaluation) call() (*delegation, *decision) {
	refuse := func(code, reason string) (*delegation, *decision) {
		denied := deny(code, reason)
		return nil, &denied
	}
	if e.Action.Name != gateway.MethodCall && e.Action.Name != "call" {
		return refuse(codeActionUnknown, fmt.Sprintf("action.name is neither %q nor \"call\".", gateway.MethodCall))
	}
	if e.Resource.Type != "tool" && e.Resource.Type != "mcp_tool" {
		return refuse(codeResourceUnknown, `resource.type is neither "tool" nor "mcp_tool".`)
	}

	d := &delegation{tool: e.Resource.ID}
	if named, ok := e.Resource.Properties["server"]; ok {
		if json.Unmarshal(named, &d.server) != nil || d.server == "" {
			return refuse(codeResourceUnknown, "resource.properties.server is no name of a server.")
		}
	} else if d.server, d.tool, ok = strings.Cut(e.Resource.ID, toolSeparator); !ok || d.server == "" || d.tool == "" {
		return refuse(codeResourceUnknown, "resource.id is not SERVER__TOOL, and there is no resource.properties.server.")
	}

	places := 0
	for _, members := range []map[string]jsontext.Value{e.Context, e.Resource.Properties, e.Action.Properties} {
		if arguments, ok := members["arguments"]; ok {
			d.arguments = arguments
			places++
		}
	}
	switch {
	case places == 0:
		return refuse(codeArgumentsMissing, "There is no context.arguments: send those of the call, {} if it has none.")
	case places > 1:
		return refuse(codeArgumentsTwice, "There are arguments in several places: send context.arguments only.")
	case d.arguments.Kind() != jsontext.KindBeginObject:
		return refuse(codeArgumentsMissing, "The arguments are no JSON object.")
	}
	return d, nil
}
