package config

import (
	"net/url"
	"slices"

	"pgfsm/policy"
)

// LLM holds a model that the environment names.
type LLM struct {
	BaseURL string // LLM_BASE_URL
	Model   string // LLM_MODEL
	APIKey  string // LLM_API_KEY; the key itself, not a reference
}

// The names of the environment variables for a model in messages.
const (
	varBaseURL = "LLM_BASE_URL"
	varModel   = "LLM_MODEL"
	varAPIKey  = "LLM_API_KEY"
)

// remedyNoKey is the remedy for an unusable key.
const remedyNoKey = "leave it out if the endpoint needs none"

// environment stands for the file's name in faults of environment variables.
const environment = "the environment"

// isUnencrypted reports whether data for a URL crosses the network unencrypted.
func isUnencrypted(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !isLoopback(u)
}

// copyPlanner copies the planner's settings and, if needed, the model: the file's, or else the
// environment's. It never uses the key of one with the endpoint of the other.
func (l *loader) copyPlanner(over Overrides) {
	c := &l.out.Content.Planner
	for _, r := range l.Planner.Routes {
		r.Args = canonicalJSON(r.Args)
		c.Routes = append(c.Routes, r)
	}

	c.Mode = l.Planner.Mode
	if over.Planner != "" {
		c.Mode = over.Planner
	}

	modes := []string{policy.PlannerAuto, policy.PlannerRouter, policy.PlannerLLM}
	if !slices.Contains(modes, c.Mode) {
		l.addOutsideFault("--planner", Nearest(c.Mode, modes), "%s is not a planner mode; it must be %s", quote(c.Mode),
			oneOf(modes))
		return
	}
	model, key := l.Planner.LLM, path{"planner", "llm", "api_key"}
	if c.Mode == policy.PlannerRouter {
		return
	}

	switch {
	case model != nil:
		c.LLM = &policy.LLM{
			BaseURL:   model.BaseURL,
			Model:     model.Model,
			Timeout:   model.Timeout,
			MaxTokens: model.MaxTokens,
		}
		if l.isWritten(key) {
			l.out.key = key
		}
	case over.LLM != nil && (over.LLM.BaseURL != "" || over.LLM.Model != ""):
		l.environmentModel(over.LLM)
	case c.Mode == policy.PlannerLLM:
		const remedy = "write planner.llm with base_url and model, or set " + varBaseURL + " and " + varModel
		if over.Planner != "" {
			l.addOutsideFault("--planner", remedy, "%s needs a model, and none is named", quote(c.Mode))
			return
		}
		l.addFault(path{"planner", "mode"}, remedy, "planner.mode llm needs a model, and none is named")
	}
}

// environmentModel checks and copies a model that the environment names.
func (l *loader) environmentModel(m *LLM) {
	f := &file{name: environment}
	llm := configSchema().subschema(configSchema().get("properties").get("planner").get("properties").get("llm"))

	// A value from the environment is judged as the file's value of the same meaning.
	for _, v := range []struct{ name, value, other, key string }{
		{varBaseURL, m.BaseURL, varModel, "base_url"},
		{varModel, m.Model, varBaseURL, "model"},
	} {
		s, _ := llm.memberSchema(isMap, v.key)
		url, err := url.Parse(v.value)
		refused := v.key == "base_url" && (err != nil || url.Scheme != "http" && url.Scheme != "https")
		if v.value == "" {
			f.addFaultAt(place{}, v.name, "set it, or unset "+v.other, "%s is set and %s is not", v.other, v.name)
		} else if found := s.textFault(v.value, refused); found != (fault{}) {
			f.addFaultAt(place{}, v.name, found.remedy, "%s %s", v.name, found.problem)
		}
	}

	if m.APIKey != "" {
		if found := secretFault(m.APIKey); found != (fault{}) {
			f.addFaultAt(place{}, varAPIKey, remedyNoKey, "%s %s", varAPIKey, found.problem)
		} else if hasControl(m.APIKey, false) {
			f.addFaultAt(place{}, varAPIKey, remedyLines, "%s holds a line end or another control character", varAPIKey)
		}
		if isUnencrypted(m.BaseURL) {
			f.addFaultAt(place{}, varAPIKey, "use https", "%s could be read on the way: %s is plain http", varAPIKey,
				varBaseURL)
		}
	}

	l.others = append(l.others, f.faults...)
	l.out.ambient = m.APIKey
	l.out.Content.Planner.LLM = &policy.LLM{
		BaseURL:   m.BaseURL,
		Model:     m.Model,
		Timeout:   policy.DefaultLLMTimeout,
		MaxTokens: policy.DefaultMaxTokens,
	}
}
