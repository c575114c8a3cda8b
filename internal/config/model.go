package config

import (
	"net/url"
	"slices"

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

// readable reports whether the network can read the data that is sent to a URL.
func readable(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !loopback(u)
}

// planner copies the planner's settings and, if needed, the model: the file's, or else the environment's. A key of one is never used with the endpoint of
// the other.
func (l *loader) planner(over Overrides) {
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
		l.faultOutside("--planner", Nearest(c.Mode, modes), "%s is not a planner mode; it must be %s", quote(c.Mode), oneOf(modes))
		return
	}
	model, key := l.Planner.LLM, path{"planner", "llm", "api_key"}
	if c.Mode == policy.PlannerRouter {
		return
	}
	switch {
	case model != nil:
		c.LLM = &policy.LLM{BaseURL: model.BaseURL, Model: model.Model, Timeout: model.Timeout, MaxTokens: model.MaxTokens}
		if l.writes(key) {
			l.out.key = key
		}
	case over.LLM != nil && (over.LLM.BaseURL != "" || over.LLM.Model != ""):
		l.environmentModel(over.LLM)
	case c.Mode == policy.PlannerLLM:
		const remedy = "write planner.llm with base_url and model, or set " + varBaseURL + " and " + varModel
		if over.Planner != "" {
			l.faultOutside("--planner", remedy, "%s needs a model, and none is named", quote(c.Mode))
			return
		}
		l.fault(path{"planner", "mode"}, remedy, "planner.mode llm needs a model, and none is named")
	}
}

// environmentModel judges and takes over a model that the environment names.
func (l *loader) environmentModel(m *LLM) {
	f := &file{name: environment}
	llm := configSchema().part(configSchema().get("properties").get("planner").get("properties").get("llm"))
	for _, v := range []struct{ name, value, other, key string }{{varBaseURL, m.BaseURL, varModel, "base_url"}, {varModel, m.Model, varBaseURL, "model"}} {
		s, _ := llm.memberSchema(isMap, v.key)
		url, err := url.Parse(v.value)
		refused := v.key == "base_url" && (err != nil || url.Scheme != "http" && url.Scheme != "https")
		if v.value == "" {
			f.faultAt(place{}, v.name, "set it, or unset "+v.other, "%s is set and %s is not", v.other, v.name)
		} else if problem := s.fault(v.value, refused); problem != (fault{}) {
			f.faultAt(place{}, v.name, problem.remedy, "%s %s", v.name, problem.problem)
		}
	}
	if m.APIKey != "" {
		if problem := unfit(m.APIKey); problem != (fault{}) {
			f.faultAt(place{}, varAPIKey, remedyNoKey, "%s %s", varAPIKey, problem.problem)
		} else if hasControl(m.APIKey, false) {
			f.faultAt(place{}, varAPIKey, "", "%s holds a line end or another control character", varAPIKey)
		}
		if readable(m.BaseURL) {
			f.faultAt(place{}, varAPIKey, "use https", "%s could be read on the way: %s is plain http", varAPIKey, varBaseURL)
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
