package config

import (
	"net/url"
	"slices"
	"strings"

	"pgfsm/policy"
)

// LLM is a model as the environment names it.
type LLM struct {
	BaseURL string // LLM_BASE_URL
	Model   string // LLM_MODEL
	APIKey  string // LLM_API_KEY; the key itself, not a reference
}

// The variables that name a model, as messages call them.
const (
	varBaseURL = "LLM_BASE_URL"
	varModel   = "LLM_MODEL"
	varAPIKey  = "LLM_API_KEY"
)

// remedyNoKey is said where a key cannot be one.
const remedyNoKey = "leave it out if the endpoint needs none"

// environment is the name in faults of environment variables, instead of a file.
const environment = "the environment"

// crossLLM requires https or loopback for a key.
func crossLLM(j *judge, n *node, path string) {
	at := n.get("base_url")
	if at == nil {
		return
	}
	if strings.Contains(at.text, "@") {
		j.src.hide(at) // it may contain a password
	}
	if key := n.member("api_key"); key != nil && readable(at.text) {
		j.src.fault(key.at, join(path, "api_key"), "use https", "%s could be read on the way: base_url is plain http",
			join(path, "api_key"))
	}
}

// readable reports whether the network can read the data that is sent to a URL.
func readable(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !loopback(u)
}

// planner copies the planner's settings and, if needed, the model: the file's, or else the environment's. A key of one is never used with the endpoint of
// the other.
func (l *loader) planner(over Overrides) {
	n, c := l.file.root.get("planner"), &l.out.Content.Planner
	for _, r := range n.list("routes") {
		c.Routes = append(c.Routes, policy.Route{
			ID: r.str("id"), Pattern: r.str("pattern"), Server: r.str("server"), Tool: r.str("tool"), Args: r.get("args").json(),
		})
	}
	c.Mode = n.str("mode")
	if over.Planner != "" {
		c.Mode = over.Planner
	}
	if !slices.Contains(plannerModes, c.Mode) {
		l.outside("--planner", Nearest(c.Mode, plannerModes), "%s is not a planner mode; it must be %s",
			quote(c.Mode), oneOf(plannerModes))
		return
	}
	model := n.get("llm")
	if model != nil {
		l.literal(l.file.src, model.get("api_key"), "the value of api_key", "${env:"+varAPIKey+"}")
	}
	if c.Mode == policy.PlannerRouter {
		return
	}
	switch {
	case model != nil:
		c.LLM = &policy.LLM{BaseURL: model.str("base_url"), Model: model.str("model"), Timeout: model.millis("timeout"),
			MaxTokens: model.integer("max_tokens")}
		l.out.key = model.get("api_key")
	case over.LLM != nil && (over.LLM.BaseURL != "" || over.LLM.Model != ""):
		l.environmentModel(over.LLM)
	case c.Mode == policy.PlannerLLM:
		const remedy = "write planner.llm with base_url and model, or set " + varBaseURL + " and " + varModel
		if over.Planner != "" {
			l.outside("--planner", remedy, "%s needs a model, and none is named", quote(c.Mode))
			return
		}
		l.file.src.fault(n.get("mode").at, "planner.mode", remedy, "planner.mode llm needs a model, and none is named")
	}
}

// environmentModel judges and takes over a model that the environment names.
func (l *loader) environmentModel(m *LLM) {
	src := &source{name: environment}
	j := &judge{src}
	for _, v := range []struct {
		name, value, other string
		shape              *shape
	}{{varBaseURL, m.BaseURL, varModel, baseURL}, {varModel, m.Model, varBaseURL, modelName}} {
		if v.value == "" {
			src.fault(place{}, v.name, "set it, or unset "+v.other, "%s is set and %s is not", v.other, v.name)
			continue
		}
		j.value(&node{kind: isText, text: v.value}, v.shape, v.name)
	}
	if m.APIKey != "" {
		if f := unfit(m.APIKey); f != (fault{}) {
			src.fault(place{}, varAPIKey, remedyNoKey, "%s %s", varAPIKey, f.problem)
		} else if hasControl(m.APIKey, false) {
			src.fault(place{}, varAPIKey, "", "%s holds a line end or another control character", varAPIKey)
		}
		if readable(m.BaseURL) {
			src.fault(place{}, varAPIKey, "use https", "%s could be read on the way: %s is plain http", varAPIKey, varBaseURL)
		}
	}
	l.faults = append(l.faults, src.faults...)
	l.out.ambient = m.APIKey
	l.out.Content.Planner.LLM = &policy.LLM{
		BaseURL: m.BaseURL, Model: m.Model, Timeout: policy.DefaultLLMTimeout, MaxTokens: policy.DefaultMaxTokens,
	}
}
