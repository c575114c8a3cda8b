package runner_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// An enforcementPoint is a client that follows OpenID AuthZEN Authorization API 1.0 and draft 1 of its Access Request
// and Approval Profile.
type enforcementPoint struct {
	t     *testing.T
	base  string // the identifier of the decision point
	token string
	meta  struct {
		Point       string   `json:"policy_decision_point"`
		Evaluation  string   `json:"access_evaluation_endpoint"`
		Evaluations string   `json:"access_evaluations_endpoint"`
		Requests    string   `json:"access_request_endpoint"`
		Can         []string `json:"capabilities"`
	}
}

// An azDecision is a decision as the specifications have it.
type azDecision struct {
	Decision *bool `json:"decision"`
	Context  struct {
		EvaluationID  string            `json:"evaluation_id"`
		Reason        string            `json:"reason"`
		ReasonUser    map[string]string `json:"reason_user"`
		AccessRequest *struct {
			Endpoint  string    `json:"endpoint"`
			ExpiresAt time.Time `json:"expires_at"`
		} `json:"access_request"`
		Error *struct {
			Status  int    `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"context"`
}

// An azTask is a task handle with its result.
type azTask struct {
	Type string `json:"type"` // of a problem
	Task struct {
		ID             string    `json:"id"`
		Status         string    `json:"status"`
		StatusEndpoint string    `json:"status_endpoint"`
		ExpiresAt      time.Time `json:"expires_at"`
	} `json:"task"`
	Result *struct {
		Mode     string          `json:"mode"`
		Approval json.RawMessage `json:"approval"`
	} `json:"result"`
}

// newEnforcementPoint reads the metadata of a decision point.
func newEnforcementPoint(t *testing.T, base, token string) *enforcementPoint {
	t.Helper()
	p := &enforcementPoint{t: t, base: base, token: token}
	response, err := client.Get(base + "/.well-known/authzen-configuration")
	check.NoError(t, err)
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&p.meta); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the metadata has the status %d: %v", response.StatusCode, err)
	}
	if p.meta.Point != base {
		t.Fatalf("policy_decision_point is %q, want %q", p.meta.Point, base)
	}
	return p
}

// send sends a request and returns the answer. It checks what the specification says about every answer.
func (p *enforcementPoint) send(method, url, body string, header ...string) (*http.Response, []byte) {
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return &http.Response{}, nil
	}
	r.Header = http.Header{"Authorization": {"Bearer " + p.token}, "Content-Type": {"application/json"}, "X-Request-Id": {"request/1"}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		p.t.Error(err)
		return &http.Response{}, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Error(err)
	}
	if id := response.Header["X-Request-Id"]; len(id) != 1 || id[0] != "request/1" {
		p.t.Errorf("the answer has the X-Request-ID %q, want that of the request", id)
	}
	if response.Header.Get("Cache-Control") != "no-store" {
		p.t.Errorf("the answer has Cache-Control %q, want no-store", response.Header.Get("Cache-Control"))
	}
	return response, text
}

// evaluate sends one evaluation, which must be answered with a decision.
func (p *enforcementPoint) evaluate(body string) (d azDecision) {
	p.t.Helper()
	response, text := p.send(http.MethodPost, p.meta.Evaluation, body)
	if err := json.Unmarshal(text, &d); err != nil || response.StatusCode != http.StatusOK || d.Decision == nil ||
		response.Header.Get("Content-Type") != "application/json" {
		p.t.Fatalf("the answer is %d %s, want a decision", response.StatusCode, text)
	}
	return d
}

// evaluateAll sends several evaluations.
func (p *enforcementPoint) evaluateAll(body string) (all []azDecision) {
	p.t.Helper()
	response, text := p.send(http.MethodPost, p.meta.Evaluations, body)
	answer := struct{ Evaluations *[]azDecision }{&all}
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("the answer is %d %s, want decisions", response.StatusCode, text)
	}
	for i := range all {
		if all[i].Decision == nil {
			p.t.Fatalf("the answer is %s, want a decision in each evaluation", text)
		}
	}
	return all
}

// task sends an access request, or reads a task if body is empty.
func (p *enforcementPoint) task(url, body string, status int) (a azTask) {
	p.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	response, text := p.send(method, url, body)
	if err := json.Unmarshal(text, &a); err != nil || response.StatusCode != status {
		p.t.Errorf("the answer is %d %s, want %d", response.StatusCode, text, status)
	}
	if problem := response.Header.Get("Content-Type") == "application/problem+json"; problem != (status >= 400) || problem != (a.Type != "") {
		p.t.Errorf("the answer %d has the type %s: %s", status, response.Header.Get("Content-Type"), text)
	}
	return a
}
