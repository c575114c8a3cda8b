package settings

import (
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
)

// Version is the only version of the configuration there is.
const Version = 1

// Server types.
const (
	TypeStdio = "stdio"
	TypeSSE   = "sse"
	TypeHTTP  = "http"
)

// Bounds of lists and texts that no other package bounds.
const (
	MaxPatternBytes = 4096
	MaxDenyRules    = 200  // besides the default rules, within what the input gate takes
	MaxTools        = 1024 // of one server on the allowlist
	MaxHeaders      = 64   // of one server; of its env as well
	MaxArgs         = 256
	MaxOutputs      = 1024 // of one server
	MaxNameBytes    = 64   // of a server, rule, route or environment
	MaxToolBytes    = 256  // of a tool's, header's or variable's name
	MaxReasonBytes  = 500
	MaxURLBytes     = 2048
	MaxArgBytes     = 64 << 10
)

// Patterns of names. They say in one regular expression what an editor can check too.
var (
	namePattern   = regexp.MustCompile(`^[a-zA-Z0-9]([.-]|_?[a-zA-Z0-9.-])*_?$`)
	urlPattern    = regexp.MustCompile(`^https?://`)
	headerPattern = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

var (
	plainName = &shape{form: text, match: namePattern, max: MaxNameBytes,
		what: `a name: a letter or digit, then letters, digits, ".", "-" and single "_"`}
	toolName   = &shape{form: text, max: MaxToolBytes}
	headerName = &shape{form: text, max: MaxToolBytes, match: headerPattern, what: "a header's name",
		check: checkHeaderName}
	varName  = &shape{form: text, max: MaxToolBytes, match: envName, what: "a variable's name"}
	filePath = &shape{form: text, what: "a path", check: checkPath}
	pattern  = &shape{form: text, max: MaxPatternBytes, what: "a pattern", check: checkPattern}
)

var serverShape = &shape{form: object, cross: crossServer, oneOf: jsontext.Value(
	`[{"required":["command"],"properties":{"type":{"enum":["stdio"]},"url":false,"headers":false}},` +
		`{"required":["url"],"properties":{"type":{"enum":["sse","http"]},"command":false,"args":false,"env":false}}]`),
	keys: []key{
		{name: "type", shape: &shape{form: text, enum: []string{TypeStdio, TypeSSE, TypeHTTP}},
			doc: "How the server is reached. Without it: `stdio` when there is a `command`, `http` (streamable HTTP) when " +
				"there is a `url`."},
		{name: "url", shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL",
			check: checkURL},
			doc: "Where an `sse` or `http` server listens. No user name, no password, no fragment: secrets belong into " +
				"`headers`.",
			example: `"https://docs.example.com/mcp"`},
		{name: "headers", shape: &shape{form: table, max: MaxHeaders, name: headerName, what: "header", secret: true,
			cross: crossHeaders, each: &shape{form: text, secret: true, check: checkReferences}},
			doc:     "HTTP headers for an `sse` or `http` server. Values may hold references, and are secrets.",
			example: `{Authorization: "Bearer ${env:DOCS_TOKEN}"}`},
		{name: "command", shape: &shape{form: text, what: "a program", check: checkPath},
			doc:     "The program that a `stdio` server is. A name is looked for in `PATH`; with a `/` in it, it is a path.",
			example: "npx"},
		{name: "args", shape: &shape{form: list, max: MaxArgs,
			each: &shape{form: text, empty: true, lines: true, max: MaxArgBytes}},
			doc:     "Arguments of `command`, passed as they are: no shell, no references. Not for secrets: traces hold them.",
			example: `[-y, "@modelcontextprotocol/server-filesystem", /srv/docs]`},
		{name: "env", shape: &shape{form: table, max: MaxHeaders, name: varName, what: "variable", secret: true,
			each: &shape{form: text, secret: true, empty: true, lines: true, check: checkReferences}},
			doc: "Environment variables of `command`, besides PATH, HOME, LANG and TMPDIR. Values may hold references, and " +
				"are secrets.",
			example: "{LANG: C}"},
		{name: "timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
			initial: writeDuration(policy.DefaultTimeout),
			doc:     "How long the server may take to be connected and to list its tools, and for a call."},
	}}

var ruleShape = &shape{form: object, cross: crossDeny, keys: []key{
	{name: "id", shape: plainName, required: true,
		doc: "The rule's name in verdicts. With the id of a built-in rule it widens that rule."},
	{name: "pattern", shape: pattern, required: true,
		doc: "RE2; matched against the request in folded form. A match blocks."},
	{name: "reason", shape: &shape{form: text, max: MaxReasonBytes}, required: true,
		doc: "One sentence for the person whose request is blocked."},
}}

var inputShape = &shape{form: object, keys: []key{
	{name: "defaults", shape: &shape{form: boolean}, initial: "true",
		doc: "Whether the built-in input rules hold, before those of `deny`."},
	{name: "max_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxInputBytes},
		initial: number(policy.DefaultInputBytes),
		doc:     "The longest request that is read. A longer one is blocked, not cut."},
	{name: "deny", shape: &shape{form: list, max: MaxDenyRules, unique: "id", what: "rule", each: ruleShape},
		doc:     "More input rules, judged in this order.",
		example: `[{id: payroll, pattern: "\\bsalar(y|ies)\\b", reason: "Salaries are not answered here."}]`},
}}

var routeShape = &shape{form: object, cross: crossRoute, keys: []key{
	{name: "id", shape: plainName, required: true, doc: "The route's name."},
	{name: "pattern", shape: pattern, required: true, doc: "RE2; matched against the request as it came."},
	{name: "server", shape: plainName, required: true, doc: "A name under `servers`."},
	{name: "tool", shape: toolName, required: true, doc: "The server's tool."},
	{name: "args", shape: &shape{form: anything}, initial: "{}",
		doc: "Arguments of the call. In texts, `${1}` and `${name}` stand for groups of `pattern`, `$${` for the two " +
			"characters."},
}}

var plannerShape = &shape{form: object, keys: []key{
	{name: "mode", shape: &shape{form: text, enum: []string{policy.PlannerRouter}}, initial: policy.PlannerRouter,
		doc: "`router`: the first route that matches makes the plan; without one the answer says what is missing."},
	{name: "routes", shape: &shape{form: list, max: policy.MaxRoutes, unique: "id", what: "route", each: routeShape},
		doc: "Ways from a request to a call, tried in this order.",
		example: `[{id: policy-id, pattern: "^show (policy-\\d+)$", server: mcp-policy-kb, tool: fetch_policy_entry, ` +
			`args: {policy_id: "${1}"}}]`},
}}

var limitsShape = &shape{form: object, keys: []key{
	{name: "plan_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxPlanBytes},
		initial: number(policy.DefaultPlanBytes), doc: "The longest plan that is read."},
	{name: "json_depth", shape: &shape{form: integer, min: 1, max: policy.MaxJSONDepth},
		initial: number(policy.DefaultJSONDepth), doc: "The deepest nesting of a plan and of arguments."},
	{name: "result_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxResultBytes},
		initial: number(policy.DefaultResultBytes), doc: "The longest result of a call. A longer one fails the run."},
	{name: "run_timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
		initial: writeDuration(policy.DefaultRunTimeout), doc: "How long a run may take, all in all."},
}}

var summaryModes = []string{policy.SummaryAsked, policy.SummaryAlways, policy.SummaryNever}

// configuration is the definition that everything else is made from.
var configuration = &shape{form: object, cross: crossNames, keys: []key{
	{name: "version", shape: &shape{form: integer, min: Version, max: Version}, required: true, example: number(Version),
		doc: "The version of this format."},
	{name: "env", shape: plainName, initial: "dev", doc: "The environment that policies know as `env`."},
	{name: "servers", required: true,
		shape:   &shape{form: table, min: 1, max: policy.MaxServers, name: plainName, each: serverShape, what: "server"},
		doc:     "MCP servers, by the name that everything else knows them by. An entry of a client's `mcpServers` fits.",
		example: `{docs: {type: http, url: "https://docs.example.com/mcp"}}`},
	{name: "allowlist", shape: filePath, required: true, example: "allowlist.json",
		doc: "A JSON file `{\"server\": [\"tool\", …]}`: the tools that may be called at all. `{}` allows none."},
	{name: "input", shape: inputShape, doc: "What requests are refused before anything else happens."},
	{name: "planner", shape: plannerShape, doc: "How a request becomes a plan."},
	{name: "outputs", shape: &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
		each: &shape{form: table, max: MaxOutputs, name: toolName, each: filePath, what: "tool"}},
		doc:     "Output types: for a server and tool, a file with the JSON Schema of its structured content.",
		example: "{mcp-policy-kb: {fetch_policy_entry: schemas/policy-entry.json}}"},
	{name: "summary", doc: "When a typed result is summarized.", shape: &shape{form: object, keys: []key{
		{name: "mode", shape: &shape{form: text, enum: summaryModes}, initial: policy.SummaryAsked,
			doc: "`asked`: when the request contains summarize or summarise, in any case. `always`, `never`."},
	}}},
	{name: "traces", doc: "Where the record of each run goes.", shape: &shape{form: object, keys: []key{
		{name: "dir", shape: filePath, initial: "traces", doc: "The folder for traces."},
	}}},
	{name: "limits", shape: limitsShape, doc: "What a run may cost. Zero never means unlimited."},
}}

// allowlist is the shape of the allowlist file.
var allowlist = &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
	each: &shape{form: list, max: MaxTools, unique: ".", what: "tool", each: toolName}}

func number(n int64) string { return strconv.FormatInt(n, 10) }
