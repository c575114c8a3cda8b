package toy

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Policy is a policy as fetch_policy_entry returns it.
type Policy struct {
	PolicyID        string   `json:"policy_id"`
	Title           string   `json:"title"`
	Owner           string   `json:"owner"`
	EffectiveDate   string   `json:"effective_date"` // date, YYYY-MM-DD
	ReviewCycleDays int      `json:"review_cycle_days"`
	Requirements    []string `json:"requirements"`
	Body            string   `json:"body"`
}

type policyFile struct {
	Policy    `json:",inline"`
	Tags      []string `json:"tags"`
	Sentences []string `json:"sentences"`
}

func describePolicy(f policyFile) record[Policy] {
	f.Body = strings.Join(f.Sentences, " ")
	return record[Policy]{f.PolicyID, f.Title, f.Tags, slices.Concat(f.Sentences, f.Requirements), f.Policy}
}

type (
	policyArgs struct {
		PolicyID string `json:"policy_id"`
	}
	policyFound struct {
		Status string  `json:"status"`
		Policy *Policy `json:"policy"`
	}
	policyDeleted struct {
		Status   string `json:"status"`
		PolicyID string `json:"policy_id"`
	}
	policyHit struct {
		PolicyID string `json:"policy_id"`
		Title    string `json:"title"`
		Snippet  string `json:"snippet"`
		Score    int    `json:"score"`
	}
)

const policyIDInput = `{
  "type": "object",
  "required": ["policy_id"],
  "additionalProperties": false,
  "properties": {
    "policy_id": {"type": "string", "pattern": "^policy-[0-9]{3}$", "description": "Id, such as policy-001."}
  }
}`

const policyDeletedOutput = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["status", "policy_id"],
  "additionalProperties": false,
  "properties": {
    "status": {"enum": ["DELETED", "NOT_FOUND"]},
    "policy_id": {"type": "string", "pattern": "^policy-[0-9]{3}$"}
  }
}`

func newPolicyKB() *Server {
	policies := load("policies.json", describePolicy)
	tools := []tool{
		{
			name: "search_policy_kb", title: "Search policies",
			description: "Finds policies in which every word of the query occurs.",
			input:       queryInput, output: outputType("policy-search.json"),
			run: takes(func(a queryArgs) any {
				return foundBy(a.Query, policies.search(a.Query), func(h hit) policyHit {
					return policyHit{h.id, h.title, h.snippet, h.score}
				})
			}),
		},
		{
			name: "fetch_policy_entry", title: "Fetch a policy",
			description: "Returns one policy in full.",
			input:       policyIDInput, output: outputType("policy-entry.json"),
			run: takes(func(a policyArgs) any {
				policy := policies.get(a.PolicyID)
				return policyFound{found(policy != nil), policy}
			}),
		},
		{
			name: "delete_policy_entry", title: "Delete a policy",
			description: "Deletes one policy for good.",
			input:       policyIDInput, output: jsontext.Value(policyDeletedOutput), changes: true,
			run: takes(func(a policyArgs) any {
				return policyDeleted{done(policies.remove(a.PolicyID), statusDeleted), a.PolicyID}
			}),
		},
	}
	index := &sdk.Resource{
		URI: "policykb://policies", Name: "policies", Title: "Policy index", MIMEType: "text/plain",
		Description: "Id and title of every policy.",
	}
	return newServer(PolicyKB, "Demo policy knowledge base", tools, index, policies.list, promptText{
		name: "explain_policy", title: "Explain a policy", argument: "policy_id",
		description: "Asks what a policy demands of its readers.",
		text:        "What does policy %s demand of me? Quote the sentence behind each statement.",
	})
}
