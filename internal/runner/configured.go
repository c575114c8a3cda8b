package runner

import (
	"reflect"
	"slices"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/runner/ratelimit"
	"pgfsm/internal/secret"
	"pgfsm/llm"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// A Config holds a Runner's part of the operator's configuration. A reload replaces it as a whole.
type Config struct {
	Bundle     *policy.Bundle
	Upstreams  *upstream.Upstreams
	Planner    llm.Planner
	Summarizer llm.Summarizer
	// Masks secrets in everything that servers and models send, before it is recorded.
	Secrets  *secret.Masker
	Serve    config.Serve    // settings of the gateway's answers to agents
	Recorded ledger.Settings // what the ledger records of the configuration

	// The fields below are for a [Service].
	Closed error // the reason to refuse every agent's call; nil: calls are accepted
	// The files that hold the pins, the default one first; empty: there is none to change.
	Allowlists []string
	Identity   *Identity // nil: there are no identity providers
	Required   bool      // every caller of MCP must have a token
	Claims     []config.PolicyClaim

	Connections *api.Connectable // the accounts of people; nil: there are none
	ConnectURL  string           // where people connect their accounts
}

// A ConfiguredRunner is a Runner with one configuration. It is immutable: a run keeps the
// ConfiguredRunner that it began with, whose bundle alone judges it.
type ConfiguredRunner struct {
	runner *Runner
	Config
	holdsCalls bool               // a policy may hold a call, so an agent's call may repeat a held one
	hooksAsk   bool               // a server stands for a coding agent's tools, or policies read sessions, so hooks may announce calls
	limits     *ratelimit.Limiter // limits agents; configurations with the same limits share it
}

// withConfig returns the runner with a configuration.
func (r *Runner) withConfig(c Config) *ConfiguredRunner {
	g := &ConfiguredRunner{
		runner: r, Config: c, holdsCalls: r.options.Ledger != nil && c.Bundle != nil &&
			c.Bundle.Content().Policy != nil,
	}
	if r.options.Ledger != nil && c.Bundle != nil && c.Upstreams != nil {
		g.hooksAsk = c.Bundle.ReadsSession() || c.Bundle.ReadsOrigins() || slices.ContainsFunc(c.Bundle.Servers(),
			func(server string) bool { return c.Upstreams.ClientTools(server) != nil })
	}
	if r.active != nil && reflect.DeepEqual(r.Configured().Serve.Rate, c.Serve.Rate) {
		g.limits = r.Configured().limits
	} else {
		g.limits = ratelimit.New(c.Serve.Rate, time.Now)
	}
	return g
}

// Configured returns the runner with the configuration that is active now.
func (r *Runner) Configured() *ConfiguredRunner { return r.active.Load() }
