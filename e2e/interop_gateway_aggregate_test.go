package e2e

import "strings"

// Why a scenario, or one check of it, is not asked of the endpoint of all servers. Resources keep their URIs there, and
// are asked for.
const (
	namesTool   = "calls a tool by the name that its server gave it, which has the server's name before it here"
	seeksTool   = "looks for a tool of this name among those that are listed"
	namesPrompt = "names a prompt as its server does, which has the server's name before it here"
)

// leftOut are these scenarios and checks.
var leftOut = map[string]string{
	"tools-call-simple-text":                        namesTool, // test_simple_text
	"tools-call-image":                              namesTool, // test_image_content
	"tools-call-audio":                              namesTool, // test_audio_content
	"tools-call-embedded-resource":                  namesTool, // test_embedded_resource
	"tools-call-mixed-content":                      namesTool, // test_multiple_content_types
	"tools-call-with-logging":                       namesTool, // test_tool_with_logging
	"tools-call-with-progress":                      namesTool, // test_tool_with_progress
	"tools-call-error":                              namesTool, // test_error_handling
	"tools-call-sampling":                           namesTool, // test_sampling
	"tools-call-elicitation":                        namesTool, // test_elicitation
	"elicitation-sep1034-defaults":                  namesTool, // test_elicitation_sep1034_defaults
	"elicitation-sep1330-enums":                     namesTool, // test_elicitation_sep1330_enums
	"server-sse-polling":                            namesTool, // test_reconnection
	"input-required-result-basic-elicitation":       namesTool, // test_input_required_result_elicitation
	"input-required-result-basic-sampling":          namesTool, // test_input_required_result_sampling
	"input-required-result-basic-list-roots":        namesTool, // test_input_required_result_list_roots
	"input-required-result-request-state":           namesTool, // test_input_required_result_request_state
	"input-required-result-multiple-input-requests": namesTool, // test_input_required_result_multiple_inputs
	"input-required-result-multi-round":             namesTool, // test_input_required_result_multi_round
	"input-required-result-missing-input-response":  namesTool, // test_input_required_result_elicitation
	"input-required-result-result-type":             namesTool, // test_input_required_result_elicitation
	"input-required-result-tampered-state":          namesTool, // test_input_required_result_tampered_state
	"input-required-result-capability-check":        namesTool, // test_input_required_result_capabilities
	"input-required-result-ignore-extra-params":     namesTool, // test_input_required_result_elicitation
	"input-required-result-validate-input":          namesTool, // test_input_required_result_elicitation
	// Of this scenario the other 24 checks are asked.
	"server-stateless sep-2575-server-rejects-undeclared-capability":              namesTool, // test_missing_capability
	"server-stateless sep-2575-missing-capability-http-400":                       namesTool, // test_missing_capability
	"server-stateless sep-2575-http-server-no-independent-requests-on-stream":     namesTool, // test_streaming_elicitation
	"server-stateless sep-2575-server-no-log-without-loglevel":                    namesTool, // test_logging_tool
	"server-stateless sep-2575-server-sends-tools-list-changed-on-subscription":   namesTool, // test_trigger_tool_change
	"server-stateless sep-2575-server-sends-prompts-list-changed-on-subscription": namesTool, // test_trigger_prompt_change
	"json-schema-2020-12":                    seeksTool,
	"completion-complete":                    namesPrompt, // test_prompt_with_arguments
	"prompts-get-simple":                     namesPrompt, // test_simple_prompt
	"prompts-get-with-args":                  namesPrompt, // test_prompt_with_arguments
	"prompts-get-embedded-resource":          namesPrompt, // test_prompt_with_embedded_resource
	"prompts-get-with-image":                 namesPrompt, // test_prompt_with_image
	"input-required-result-non-tool-request": namesPrompt, // test_input_required_result_prompt
}

// notLeftOut are the verdicts that are not left out.
func notLeftOut(verdicts []string) (list []string) {
	for _, v := range verdicts {
		check := v[:strings.LastIndexByte(v, ' ')]
		scenario, _, _ := strings.Cut(check, " ")
		if leftOut[scenario] == "" && leftOut[check] == "" {
			list = append(list, v)
		}
	}
	return list
}
