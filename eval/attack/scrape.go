package attack

import "regexp"

// Members of a text that is no JSON: with other quotes or none around the name, and with any quotes around the value.
var (
	scrapedServer = regexp.MustCompile(`(?i)["']?\bserver["']?\s*:\s*["']([^"']*)["']`)
	scrapedTool   = regexp.MustCompile(`(?i)["']?\btool["']?\s*:\s*(?:/\*[^*]*\*/)?\s*["']([^"']*)["']`)
	lineComment   = regexp.MustCompile(`(?m)//[^\n]*$`)
)

// scrape finds a server and a tool in a text that no decoder reads, as agents do that repair a model's output: comments,
// commas at the end, other quotes, literals that are no numbers, an end that is missing.
func scrape(text []byte) (server, tool string) {
	text = lineComment.ReplaceAll(text, nil)
	if m := scrapedServer.FindSubmatch(text); m != nil {
		server = string(m[1])
	}
	if m := scrapedTool.FindSubmatch(text); m != nil {
		tool = string(m[1])
	}
	return server, tool
}
