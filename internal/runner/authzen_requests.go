package runner

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/front"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// pathRequests is the path of access requests; a task's follows it with the id of its run (AuthZEN Access Request and
// Approval Profile, draft 1). A held evaluation is already the request: submitting it changes nothing.
const pathRequests = "/access/v1/requests"

// A requestable says that approvers may still permit a denied call.
type requestable struct {
	Endpoint  string `json:"endpoint"`
	ExpiresAt string `json:"expires_at"`
}

// An accessRequest names the denied evaluation, and repeats it.
type accessRequest struct {
	Evaluation evaluation     `json:",embed"`
	Callback   jsontext.Value `json:"callback"`
	Denial     struct {
		EvaluationID string `json:"evaluation_id"`
		ExpiresAt    string `json:"expires_at"`
	} `json:"denial"`
	Items jsontext.Value `json:"items"`
}

// An accessTask is the state of an access request.
type accessTask struct {
	ExpiresAt      string `json:"expires_at"`
	ID             string `json:"id"`
	Status         string `json:"status"`
	StatusEndpoint string `json:"status_endpoint"`
}

// Statuses of tasks. Requests are not bundled, and cannot be cancelled.
const (
	taskPending  = "pending"
	taskApproved = "approved"
	taskDenied   = "denied"
	taskExpired  = "expired"
	taskFailed   = "failed"
)

// A taskAnswer is a task and, once it is approved, how to use the approval: evaluate again.
type taskAnswer struct {
	Result *taskResult `json:"result,omitzero"`
	Task   accessTask  `json:"task"`
}

type taskResult struct {
	Approval struct {
		ApprovedUntil string `json:"approved_until"`
		ID            string `json:"id"`
	} `json:"approval"`
	Mode string `json:"mode"`
}

// A problem is an error in the form of RFC 9457.
type problem struct {
	Detail string `json:"detail"`
	Status int    `json:"status"`
	Title  string `json:"title"`
	Type   string `json:"type"`
}

// Problems of access requests, which the profile defines.
const (
	problemType          = "urn:openid:authzen:access-request:error:"
	problemBinding       = "invalid_denial_binding"
	problemExpired       = "expired_denial"
	problemNotRequested  = "not_requestable"
	problemUnknownTask   = "unknown_task"
	problemOther         = "" // the status says it all
	mediaProblem         = "application/problem+json"
	titleAccessRequest   = "The access request is refused"
	detailUnknownRequest = "no evaluation of this token's subject has the id denial.evaluation_id"
)

func problemReply(status int, kind, detail string) front.Reply {
	uri := "about:blank"
	if kind != problemOther {
		uri = problemType + kind
	}
	reply := jsonReply(status, problem{Detail: detail, Status: status, Title: titleAccessRequest, Type: uri})
	reply.Type = mediaProblem
	return reply
}

// answerAccessRequest answers with the task of a held evaluation, if the request is about this evaluation.
func (p *decisionPoint) answerAccessRequest(ctx context.Context, body []byte) front.Reply {
	q := new(accessRequest)
	if err := readStrict(body, q); err != nil {
		return problemReply(http.StatusBadRequest, problemOther, err.Error())
	}
	switch {
	case q.Items != nil:
		return problemReply(http.StatusBadRequest, problemOther, "items is not supported: send a request for each")
	case q.Callback != nil:
		return problemReply(http.StatusBadRequest, problemOther, "callback is not supported: read the task")
	case q.Denial.EvaluationID == "":
		return problemReply(http.StatusBadRequest, problemBinding, "denial.evaluation_id is missing")
	}
	if err := q.Evaluation.check(); err != nil {
		return problemReply(http.StatusBadRequest, problemOther, err.Error())
	}

	row, err := p.runner.readRequest(ctx, q.Denial.EvaluationID)
	switch {
	case errors.Is(err, ledger.ErrNotFound) || err == nil && !p.mayRead(&row, q.Evaluation.Subject.ID):
		return problemReply(http.StatusBadRequest, problemBinding, detailUnknownRequest)
	case err != nil:
		return p.unreadable(ctx, err)
	case row.Binding == "":
		return problemReply(http.StatusBadRequest, problemNotRequested, "nobody can approve it: it was not held")
	}
	call, denied := q.Evaluation.call()
	switch {
	case denied != nil:
		return problemReply(http.StatusBadRequest, problemBinding, denied.Context.ReasonUser["en"])
	case call.server != row.Server || call.tool != row.Tool || digestOf("arguments", call.arguments) != row.Arguments:
		return problemReply(http.StatusBadRequest, problemBinding,
			"the call is not that of the evaluation: repeat its action, resource and arguments")
	case q.Denial.ExpiresAt != row.Expires && !row.UsesApproval(): // after the approval, the row has another time
		return problemReply(http.StatusBadRequest, problemBinding,
			"denial.expires_at is not the value that context.access_request had")
	case !policy.IsBefore(p.runner.timestamp(), row.Expires):
		return problemReply(http.StatusGone, problemExpired, "the evaluation expired: evaluate again")
	}

	answer := p.taskOf(&row)
	if answer.Task.Status == taskPending {
		return jsonReply(http.StatusAccepted, answer)
	}
	return jsonReply(http.StatusCreated, answer)
}

// answerTask answers with the state of an access request.
func (p *decisionPoint) answerTask(ctx context.Context, run string) front.Reply {
	row, err := p.runner.readRequest(ctx, run)
	switch {
	case errors.Is(err, ledger.ErrNotFound) || err == nil && (row.Binding == "" || !p.mayRead(&row, subjectOf(&row))):
		return problemReply(http.StatusNotFound, problemUnknownTask, "no task with this id belongs to the token's subject")
	case err != nil:
		return p.unreadable(ctx, err)
	}
	return jsonReply(http.StatusOK, p.taskOf(&row))
}

// subjectOf returns the subject for which a run was requested.
func subjectOf(row *ledger.RunRow) string { return cmp.Or(row.OnBehalfOf, row.Actor) }

// mayRead reports whether a run is an evaluation that this token requested for a subject.
func (p *decisionPoint) mayRead(row *ledger.RunRow, subject string) bool {
	from, _, ok := p.speakFor(subject)
	return ok && row.Kind == states.KindEvaluation && askerOf(from).IsRequester(row)
}

func (p *decisionPoint) unreadable(ctx context.Context, err error) front.Reply {
	p.runner.log.WarnContext(ctx, "access request", "error", err)
	return problemReply(http.StatusServiceUnavailable, problemOther, "the ledger cannot be read now")
}

// taskOf returns the task of a held run.
func (p *decisionPoint) taskOf(row *ledger.RunRow) taskAnswer {
	answer := taskAnswer{Task: accessTask{
		ExpiresAt:      row.Expires,
		ID:             row.RunID,
		Status:         taskStatus(row, p.runner.timestamp()),
		StatusEndpoint: p.url + pathRequests + "/" + row.RunID,
	}}
	if answer.Task.Status == taskApproved {
		answer.Result = &taskResult{Mode: "reevaluate"}
		answer.Result.Approval.ID, answer.Result.Approval.ApprovedUntil = row.RunID, row.Expires
	}
	return answer
}

// taskStatus returns the profile's status of a held run. A task whose approval was used stays approved.
func taskStatus(row *ledger.RunRow, now string) string {
	open := row.Ended == "" && policy.IsBefore(now, row.Expires)
	switch {
	case row.Sent != "" || row.Status == ledger.Approved && open:
		return taskApproved
	case row.Status == ledger.Pending && open:
		return taskPending
	case row.Code == string(policy.CodeApprovalDenied):
		return taskDenied
	case row.Status == ledger.Expired || row.Ended == "":
		return taskExpired
	}
	return taskFailed
}
