package attack

import (
	"regexp"

	"pgfsm/eval"
)

// callNaively calls tools like an agent without gates. It takes the first JSON object in the
// planner's output, as lenient decoders do (the last of two members of one name, names in any case,
// bytes that are no UTF-8). If the output is no JSON, it takes the call that it can scrape out of
// the text. It makes the call if there is such a tool.
func callNaively(tools *eval.Tools, c *eval.Call) CallResult {
	server, tool := c.Server, c.Tool
	if c.Plan != nil {
		call, _ := eval.FirstCall(*c.Plan)
		server, tool = call.Server, call.Tool
		if !tools.Lists(server, tool) {
			server, tool = scrapeCall(*c.Plan)
		}
	}
	if !tools.Lists(server, tool) {
		return CallResult{Code: codeUnlisted}
	}
	return CallResult{Made: true}
}

// codeUnlisted is the code if the naive agent makes no call: there is no such tool, or the output
// has no call.
const codeUnlisted = "no_such_tool"

// Members of a text that is no JSON: with other quotes or none around the name, and with any quotes
// around the value.
var (
	scrapedServer = regexp.MustCompile(`(?i)["']?\bserver["']?\s*:\s*["']([^"']*)["']`)
	scrapedTool   = regexp.MustCompile(`(?i)["']?\btool["']?\s*:\s*(?:/\*[^*]*\*/)?\s*["']([^"']*)["']`)
	lineComment   = regexp.MustCompile(`(?m)//[^\n]*$`)
)

// scrapeCall finds a server and a tool in a text that no decoder reads, as agents do that repair a
// model's output: comments, commas at the end, other quotes, literals that are no numbers, an end
// that is missing.
func scrapeCall(text []byte) (server, tool string) {
	text = lineComment.ReplaceAll(text, nil)
	if m := scrapedServer.FindSubmatch(text); m != nil {
		server = string(m[1])
	}
	if m := scrapedTool.FindSubmatch(text); m != nil {
		tool = string(m[1])
	}
	return server, tool
}
