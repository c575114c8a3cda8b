package hookcheck

import (
	"bytes"
)

// Gemini CLI runs no command unless it is told not to ask the user, which is fit for tests only.
func init() {
	clients = append(clients, Client{
		Name:    "gemini",
		Program: "gemini",
		Tool:    "run_shell_command",
		arguments: func(string) []string {
			return []string{"-p", prompt, "-m", "gemini-2.5-flash"}
		},
		environment: func(model string) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_API_KEY=none", "GEMINI_DEFAULT_AUTH_TYPE=gemini-api-key",
				"GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		path:   "GenerateContent",
		answer: answerGemini,
	})
}

// answerGemini follows the API of Gemini.
func answerGemini(request []byte, command string) reply {
	part := `{"text":"done"}`
	answered := reply{result: resultIn(request, `"functionResponse"`)}
	if bytes.Contains(request, []byte(`"run_shell_command"`)) && answered.result == "" {
		answered.calls = true
		part = `{"functionCall":{"name":"run_shell_command","args":{"command":` + quote(command) + `,"description":"a check of the hooks"}}}`
	}
	answered.text = `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`
	return answered
}
