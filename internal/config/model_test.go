package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

const fileModel = `planner: {llm: {base_url: "https://file.example/v1", model: file-model, ` +
	`api_key: "${env:FILE_KEY}", max_tokens: 7}}` + "\n"

func loadModel(text string, over Overrides) (*Loaded, error) {
	return Load("c.yaml", openMap(map[string]string{"c.yaml": minimal + text, "allow.json": "{}"}), over)
}

// TestWhoNamesTheModel shows which of file, environment and flag wins, and that an endpoint never gets another's key.
func TestWhoNamesTheModel(t *testing.T) {
	ours := &policy.LLM{BaseURL: "https://file.example/v1", Model: "file-model", Timeout: 60_000, MaxTokens: 7}
	theirs := &policy.LLM{BaseURL: "https://env.example/v1", Model: "env-model", Timeout: 60_000, MaxTokens: 512}
	env := LLM{BaseURL: "https://env.example/v1", Model: "env-model", APIKey: "env-key-1234"}
	const keyless = `planner: {llm: {base_url: "https://file.example/v1", model: file-model, max_tokens: 7}}` + "\n"
	for _, c := range []struct {
		name, text string
		over       Overrides
		mode       string
		want       *policy.LLM
		key        string
	}{
		{"nobody", "", Overrides{}, "auto", nil, ""},
		{"the-file", fileModel, Overrides{}, "auto", ours, "file-key-1234"},
		{"the-environment", "", Overrides{LLM: &env}, "auto", theirs, "env-key-1234"},
		{"both", fileModel, Overrides{LLM: &env}, "auto", ours, "file-key-1234"},
		{"the-file-has-no-key", keyless, Overrides{LLM: &env}, "auto", ours, ""},
		{"environment-without-a-key", "", Overrides{LLM: &LLM{BaseURL: env.BaseURL, Model: env.Model}}, "auto", theirs, ""},
		{"environment-with-a-key-only", "", Overrides{LLM: &LLM{APIKey: "short"}}, "auto", nil, ""},
		{"file-says-router", "planner: {mode: router}\n", Overrides{LLM: &env}, "router", nil, ""},
		{"flag-says-router", fileModel, Overrides{LLM: &env, Planner: "router"}, "router", nil, ""},
		{"flag-says-llm", fileModel, Overrides{Planner: "llm"}, "llm", ours, "file-key-1234"},
		{"flag-over-the-file", "planner: {mode: router}\n", Overrides{LLM: &env, Planner: "auto"},
			"auto", theirs, "env-key-1234"},
		{"file-says-llm-and-the-environment-has-one", "planner: {mode: llm}\n", Overrides{LLM: &env},
			"llm", theirs, "env-key-1234"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := loadModel(c.text, c.over)
			check.NoError(t, err)
			if got := l.Content.Planner; got.Mode != c.mode {
				t.Errorf("mode = %q, want %q", got.Mode, c.mode)
			}
			if diff := cmp.Diff(c.want, l.Content.Planner.LLM); diff != "" {
				t.Errorf("model (-want +got):\n%s", diff)
			}
			if _, err := policy.Compile(l.Content); err != nil {
				t.Errorf("Compile() = %v", err)
			}
			vars := map[string]string{"FILE_KEY": "file-key-1234"}
			if c.key == "" {
				vars = nil // what is not used is not asked for
			}
			r, err := l.Resolve(lookup(vars), openMap(nil))
			check.NoError(t, err)
			if r.LLMKey != c.key {
				t.Errorf("key = %q, want %q", r.LLMKey, c.key)
			}
			if masked := strings.Join(r.Secrets, "\n"); masked != c.key {
				t.Errorf("secrets = %q, want the key %q alone", masked, c.key)
			}
		})
	}
}

func TestModelsThatAreRefused(t *testing.T) {
	const url, model = "https://env.example/v1", "m"
	for _, c := range []struct {
		name, text string
		over       Overrides
		want       string
	}{
		{"no-model-name", "", Overrides{LLM: &LLM{BaseURL: url}},
			"the environment: LLM_BASE_URL is set and LLM_MODEL is not\n"},
		{"no-url", "", Overrides{LLM: &LLM{Model: model}}, "the environment: LLM_MODEL is set and LLM_BASE_URL is not\n"},
		{"url-of-another-kind", "", Overrides{LLM: &LLM{BaseURL: "ftp://h", Model: model}},
			"the environment: LLM_BASE_URL is not an http or https URL"},
		{"key-one-too-short", "", Overrides{LLM: &LLM{BaseURL: url, Model: model, APIKey: "hidden-"}},
			"the environment: LLM_API_KEY has 7 bytes; a secret has at least 8"},
		{"key-with-a-line-end", "", Overrides{LLM: &LLM{BaseURL: url, Model: model, APIKey: "hidden-1\nX: y"}},
			"the environment: LLM_API_KEY holds a line end"},
		{"key-over-plain-http", "", Overrides{LLM: &LLM{BaseURL: "http://env.example/v1", Model: model, APIKey: "hidden-1"}},
			"the environment: LLM_API_KEY could be read on the way: LLM_BASE_URL is plain http"},
		{"flag-of-another-kind", "", Overrides{Planner: "lm"},
			"--planner: \"lm\" is not a planner mode; it must be auto, router or llm\n       did you mean llm?"},
		{"flag-says-llm-without-a-model", "", Overrides{Planner: "llm"},
			"--planner: \"llm\" needs a model, and none is named\n" +
				"       write planner.llm with base_url and model, or set LLM_BASE_URL and LLM_MODEL"},
		{"file-says-llm-without-a-model", "planner: {mode: llm}\n", Overrides{LLM: &LLM{APIKey: "key-12345"}},
			"c.yaml:5:17: planner.mode llm needs a model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadModel(c.text, c.over)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("Load = %v, want %s…", err, c.want)
			}
			if strings.Contains(err.Error(), "hidden-") {
				t.Errorf("the message shows a secret: %v", err)
			}
		})
	}
	if _, err := loadModel("", Overrides{LLM: &LLM{BaseURL: "http://127.0.0.1:1/v1", Model: model, APIKey: "key-1234"}}); err != nil {
		t.Errorf("Load with a model on this machine over plain http: %v", err)
	}
}

func TestKeysThatCannotBeResolved(t *testing.T) {
	const at = "c.yaml:5:82: planner.llm.api_key "
	for _, c := range []struct{ name, key, value, want string }{
		{"variable-not-set", "${env:OTHER}", "", at + "needs the variable OTHER, which is not set"},
		{"variable-too-short", "${env:FILE_KEY}", "hidden-", at + "needs the variable FILE_KEY, which has 7 bytes"},
		{"literal-too-short", "hidden-", "", at + "has 7 bytes; a secret has at least 8"},
		{"line-end", "${env:FILE_KEY}", "hidden-1\n", at + "holds a line end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := loadModel(strings.Replace(fileModel, "${env:FILE_KEY}", c.key, 1), Overrides{})
			check.NoError(t, err)
			_, err = l.Resolve(lookup(map[string]string{"FILE_KEY": c.value}), openMap(nil))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("Resolve = %v, want %s…", err, c.want)
			}
			if strings.Contains(err.Error(), "hidden-") || strings.Count(err.Error(), "api_key ") != 1 {
				t.Errorf("Resolve = %v, want one fault, without the key", err)
			}
		})
	}
}
