package config

import (
	"regexp"
	"strconv"
	"strings"

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
	MaxModelBytes   = 256 // of a model's name
	MaxArgBytes     = 64 << 10
	MaxRoles        = 256
	MaxActors       = 1024 // of one role
	MaxActorBytes   = 1024 // of ISSUER#SUBJECT
	MaxHooks        = 16
	MaxScopes       = 64 // of one server
)

// Patterns of names. They say in one regular expression what an editor can check too.
var (
	namePattern   = regexp.MustCompile(`^[a-zA-Z0-9]([.-]|_?[a-zA-Z0-9.-])*_?$`)
	urlPattern    = regexp.MustCompile(`^https?://`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	headerPattern = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

var (
	plainName = &shape{form: text, match: namePattern, max: MaxNameBytes,
		what: `a name: a letter or digit, then letters, digits, ".", "-" and single "_"`}
	toolName   = &shape{form: text, max: MaxToolBytes}
	groupName  = &shape{form: text, max: MaxToolBytes, check: checkShown, what: "a group"}
	headerName = &shape{form: text, max: MaxToolBytes, match: headerPattern, what: "a header's name",
		check: checkHeaderName}
	varName   = &shape{form: text, max: MaxToolBytes, match: envName, what: "a variable's name"}
	baseURL   = &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL", check: checkBaseURL}
	modelName = &shape{form: text, max: MaxModelBytes}
	filePath  = &shape{form: text, what: "a path", check: checkPath}
	ledgerURL = &shape{form: text, secret: true, match: ledgerPattern, what: `the URL of a ledger: "sqlite:" and a path, or "postgres://…"`, check: checkLedger}
	pattern   = &shape{form: text, max: MaxPatternBytes, what: "a pattern", check: checkPattern}
	digest    = &shape{form: text, match: digestPattern, what: `a digest: "sha256:" and 64 lower-case hexadecimal digits`}
)

var authShape = &shape{form: object, keys: []key{
	{name: "client_credentials", required: true, doc: "OAuth 2.0 client credentials: pgfsm itself is the client, for all agents.",
		shape: &shape{form: object, cross: crossCredentials, oneOf: jsontext.Value(
			`[{"required":["client_secret"],"properties":{"private_key":false,"issuer":false,"alg":false,"key_id":false}},` +
				`{"required":["private_key","issuer"],"properties":{"client_secret":false}}]`), keys: []key{
			{name: "token_url", shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL", check: checkHookURL},
				required: true, example: `"https://login.example.com/oauth2/token"`,
				doc: "The token endpoint: https, or http on this machine. Redirects are refused."},
			{name: "client_id", shape: clientID, required: true, example: "pgfsm",
				doc: "The client's id at the provider."},
			{name: "client_secret", shape: &shape{form: text, secret: true, what: "a secret", check: checkReferences},
				doc: "The client's secret, which pgfsm sends to the token endpoint alone (`client_secret_basic`). May contain references, and is a " +
					"secret of 8 bytes or more. An entry has either `client_secret` or `private_key`.",
				example: `"${env:CRM_SECRET}"`},
			{name: "private_key", shape: &shape{form: text, secret: true, lines: true, max: MaxSecretBytes, what: "a secret", check: checkReferences},
				doc: "The client's private key in PEM, unencrypted: RSA of 2048 bits or more, EC P-256 or Ed25519. pgfsm signs a client assertion with it " +
					"for each token request (`private_key_jwt`), and sends the key nowhere. May contain references, and is a secret.",
				example: `"${file:crm.key}"`},
			{name: "issuer", shape: &shape{form: text, max: MaxURLBytes, check: checkResource}, example: `"https://login.example.com"`,
				doc: "With `private_key`, required: the provider's issuer identifier, which is the audience (`aud`) of the client assertion. For a provider " +
					"that expects the URL of its token endpoint there, that URL."},
			{name: "alg", shape: &shape{form: text, enum: signingAlgorithms}, example: "PS256",
				doc: "With `private_key`: the algorithm of the signature. Default: `RS256` for an RSA key, `ES256` for an EC key, `EdDSA` for an Ed25519 key."},
			{name: "key_id", shape: clientID, example: "2026-11",
				doc: "With `private_key`: the key's id at the provider (`kid`). Default: none is sent."},
			{name: "scopes", shape: &shape{form: list, max: MaxScopes, unique: ".", what: "scope", each: scope},
				doc: "The scopes to ask for. Default: those that the provider chooses.", example: "[crm.read]"},
			{name: "resource", shape: &shape{form: text, empty: true, max: MaxURLBytes, check: checkResource},
				doc:     "The server's identifier at the provider (RFC 8707). Default: the server's `url`. `\"\"`: none is sent, for providers that refuse it.",
				example: `"https://crm.example.com"`},
			{name: "audience", shape: &shape{form: text, max: MaxURLBytes, check: checkShown},
				doc:     "The parameter `audience`, for providers that ask for it. Default: it is not sent.",
				example: `"https://crm.example.com"`},
		}}},
}}

var serverShape = &shape{form: object, cross: crossServer, oneOf: jsontext.Value(
	`[{"required":["command"],"properties":{"type":{"enum":["stdio"]},"url":false,"headers":false,"auth":false,"digest":false}},` +
		`{"required":["url"],"properties":{"type":{"enum":["sse","http"]},"command":false,"args":false,"env":false,` +
		`"digest":false}},` +
		`{"required":["digest"],"properties":{"type":false,"url":false,"headers":false,"auth":false,"command":false,` +
		`"args":false,"env":false}}]`),
	keys: []key{
		{name: "type", shape: &shape{form: text, enum: []string{TypeStdio, TypeSSE, TypeHTTP}},
			doc: "The transport. Default: `stdio` with a `command`, `http` (streamable HTTP) with a `url`."},
		{name: "url", shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL",
			check: checkURL},
			doc:     "The address of an `sse` or `http` server. No user name, no password, no fragment: put secrets into `headers`.",
			example: `"https://docs.example.com/mcp"`},
		{name: "headers", shape: &shape{form: table, max: MaxHeaders, name: headerName, what: "header", secret: true,
			cross: crossHeaders, each: &shape{form: text, secret: true, check: checkReferences}},
			doc:     "HTTP headers for an `sse` or `http` server. Values may contain references, and are secrets.",
			example: `{Authorization: "Bearer ${env:DOCS_TOKEN}"}`},
		{name: "auth", shape: authShape, absent: true,
			doc: "How pgfsm gets access tokens for an `sse` or `http` server. It sends them in the `Authorization` header, so `headers` must not have one.",
			example: `{client_credentials: {token_url: "https://login.example.com/token", client_id: pgfsm, ` +
				`client_secret: "${env:CRM_SECRET}", scopes: [crm.read]}}`},
		{name: "command", shape: &shape{form: text, what: "a program", check: checkPath},
			doc:     "The program of a `stdio` server: a name, which pgfsm looks up in `PATH`, or a path that contains a `/`.",
			example: "npx"},
		{name: "args", shape: &shape{form: list, max: MaxArgs,
			each: &shape{form: text, empty: true, lines: true, max: MaxArgBytes}},
			doc:     "Arguments of `command`, passed unchanged: no shell, no references. No secrets: traces contain the arguments.",
			example: `[-y, "@modelcontextprotocol/server-filesystem", /srv/docs]`},
		{name: "env", shape: &shape{form: table, max: MaxHeaders, name: varName, what: "variable", secret: true,
			each: &shape{form: text, secret: true, empty: true, lines: true, check: checkReferences}},
			doc:     "Environment variables of `command`, besides PATH, HOME, LANG and TMPDIR. Values may contain references, and are secrets.",
			example: "{LANG: C}"},
		{name: "timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
			initial: writeDuration(policy.DefaultTimeout),
			doc:     "The time limit of a call, counted from sending it or from the server's last progress report."},
		{name: "timeout_total", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
			initial: writeDuration(policy.DefaultTimeoutTotal),
			doc:     "The time limit of a call in total. Progress reports do not extend it."},
		{name: "connect_timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
			initial: writeDuration(policy.DefaultConnectTimeout),
			doc:     "The time limit to connect to the server, and to list its tools."},
		{name: "sessions", shape: &shape{form: text, enum: []string{SessionsIdentity, SessionsSession, SessionsOne}}, initial: SessionsIdentity,
			doc: "Who shares a session with the server, and so its process and its state. `identity`: the clients of one identity; requests without a token " +
				"are one identity. `session`: no two client sessions; each has its own. `one`: all clients of all identities, for a server " +
				"without state. Approved calls use a session of the requester's identity, or the `one`."},
		{name: "idle_timeout", shape: &shape{form: duration, min: MinIdleTimeout, max: MaxIdleTimeout},
			initial: writeDuration(DefaultIdleTimeout),
			doc: "How long an unused session with the server stays open. The process of a `stdio` server then ends, and its state is lost. " +
				"With an `sse` or `http` server, the session of a client counts as a use."},
		{name: "expose", shape: exposeShape, initial: defaultExpose,
			doc: "The kinds of messages that the gateway relays between agents and this server: a list of `tools`, `progress`, `cancellation`, " +
				"`logging`, `resources`, `prompts`, `completion`, `sampling`, `elicitation`, `roots`, `input_required`, or the " +
				"word `all`. With an empty list, the gateway relays nothing. `sampling`, `elicitation`, `roots` and subscriptions to resources " +
				"need `sessions: session`; without it, `all` leaves them out. Only `pgfsm serve` reads this key."},
		{name: "schemas", shape: &shape{form: table, max: MaxTools, name: toolName, what: "tool", each: filePath},
			doc: "JSON Schemas that judge the arguments of calls in place of the `inputSchema` of the server: tool to file. Such a tool must be pinned. " +
				"Agents see the schema in `tools/list`.",
			example: "{search: search.schema.json}"},
		{name: "digest", shape: digest,
			doc: "Uses the server of this name in the `mcp_servers` file. The digest of its entry there must be this one. Only `timeout`, " +
				"`timeout_total`, `connect_timeout`, `idle_timeout`, `sessions`, `expose` and `schemas` are allowed with it.",
			example: "sha256:" + strings.Repeat("0", 64)},
	}}

var inputKinds = []string{policy.KindAsk, policy.KindCall, policy.KindAgent}

var ruleShape = &shape{form: object, cross: crossDeny, keys: []key{
	{name: "id", shape: plainName, required: true,
		doc: "The rule's name in verdicts. With the id of a built-in rule, it extends that rule."},
	{name: "pattern", shape: pattern, required: true,
		doc: "RE2; matched against the request after case folding and after removing disguises. A match blocks."},
	{name: "reason", shape: &shape{form: text, max: MaxReasonBytes}, required: true,
		doc: "One sentence for the requester whose request is blocked."},
	{name: "on", shape: &shape{form: list, min: 1, max: int64(len(inputKinds)), unique: ".", what: "kind of request",
		each: &shape{form: text, enum: inputKinds}}, example: "[ask, agent]",
		doc: "The kinds of request that the rule judges: `ask` (a question), `call` (an operator's call), `agent` (an agent's call). " +
			"Default: `ask`. The rule judges every string of a call; the call may then have at most `max_bytes`."},
}}

var inputShape = &shape{form: object, keys: []key{
	{name: "defaults", shape: &shape{form: boolean}, initial: "true",
		doc: "Whether the built-in input rules apply, before those of `deny`."},
	{name: "max_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxInputBytes},
		initial: number(policy.DefaultInputBytes),
		doc:     "The maximum length of a text that input rules judge. A longer text is blocked."},
	{name: "deny", shape: &shape{form: list, max: MaxDenyRules, unique: "id", what: "rule", each: ruleShape},
		doc:     "Further input rules, in the order in which they judge.",
		example: `[{id: payroll, pattern: "\\bsalar(y|ies)\\b", reason: "Salaries are not answered here."}]`},
}}

var routeShape = &shape{form: object, cross: crossRoute, keys: []key{
	{name: "id", shape: plainName, required: true, doc: "The route's name."},
	{name: "pattern", shape: pattern, required: true, doc: "RE2; matched against the unchanged request."},
	{name: "server", shape: plainName, required: true, doc: "A name under `servers`."},
	{name: "tool", shape: toolName, required: true, doc: "The server's tool."},
	{name: "args", shape: &shape{form: anything}, initial: "{}",
		doc: "Arguments of the call. In texts, pgfsm replaces `${1}` and `${name}` by groups of `pattern`, and `$${` by `${`."},
}}

var plannerModes = []string{policy.PlannerAuto, policy.PlannerRouter, policy.PlannerLLM}

var llmShape = &shape{form: object, cross: crossLLM, keys: []key{
	{name: "base_url", shape: baseURL, required: true, example: `"https://llm.example.com/v1"`,
		doc: "The base URL of an OpenAI-compatible endpoint: the part before `/chat/completions`. No user name, no password, " +
			"no query, no fragment."},
	{name: "model", shape: modelName, required: true, example: "some-model",
		doc: "The model's name, as the endpoint knows it."},
	{name: "api_key", shape: &shape{form: text, secret: true, what: "a key", check: checkReferences},
		doc:     "The endpoint's key. May contain references, and is a secret of 8 bytes or more.",
		example: `"${env:LLM_API_KEY}"`},
	{name: "timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
		initial: writeDuration(policy.DefaultLLMTimeout), doc: "The time limit of one completion."},
	{name: "max_tokens", shape: &shape{form: integer, min: 1, max: policy.MaxTokens},
		initial: number(policy.DefaultMaxTokens), doc: "The maximum number of tokens of one completion."},
}}

var plannerShape = &shape{form: object, keys: []key{
	{name: "mode", shape: &shape{form: text, enum: plannerModes}, initial: policy.PlannerAuto,
		doc: "`auto`: the first matching route makes the plan. If no route matches, the model makes it; without a model, the answer says what is " +
			"missing. `router`: routes only. `llm`: the model for every request."},
	{name: "llm", shape: llmShape, absent: true,
		doc: "The model that plans and summarizes. Without this key, the environment can name a model: `LLM_BASE_URL`, " +
			"`LLM_MODEL`, `LLM_API_KEY`.",
		example: `{base_url: "https://llm.example.com/v1", model: some-model, api_key: "${env:LLM_API_KEY}"}`},
	{name: "routes", shape: &shape{form: list, max: policy.MaxRoutes, unique: "id", what: "route", each: routeShape},
		doc: "Routes from a request to a call. The first match makes the plan.",
		example: `[{id: policy-id, pattern: "^show (policy-\\d+)$", server: mcp-policy-kb, tool: fetch_policy_entry, ` +
			`args: {policy_id: "${1}"}}]`},
}}

var limitsShape = &shape{form: object, keys: []key{
	{name: "plan_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxPlanBytes},
		initial: number(policy.DefaultPlanBytes), doc: "The maximum length of a planner's plan."},
	{name: "arguments_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxArgumentsBytes},
		initial: number(policy.DefaultArgumentsBytes), doc: "The maximum size of the arguments of an agent's or an operator's call, as it was sent. They have at most 50000 values, too."},
	{name: "json_depth", shape: &shape{form: integer, min: 1, max: policy.MaxJSONDepth},
		initial: number(policy.DefaultJSONDepth), doc: "The maximum nesting of a plan and of arguments."},
	{name: "result_bytes", shape: &shape{form: integer, min: 1, max: policy.MaxResultBytes},
		initial: number(policy.DefaultResultBytes), doc: "The maximum length of a call's result. A longer result fails the run."},
	{name: "run_timeout", shape: &shape{form: duration, min: 1, max: policy.MaxRunTimeout},
		initial: writeDuration(policy.DefaultRunTimeout), doc: "The time limit of a run, without the time of its call."},
	{name: "server_sessions", shape: &shape{form: integer, min: 1, max: MaxServerSessions}, initial: number(DefaultServerSessions),
		doc: "The maximum number of sessions with all `stdio` servers together, on each gateway. Each has a process. If it is reached, the session " +
			"that was unused for longest ends; if all are in use, calls and lists fail with `too_many_sessions`. One identity gets half, " +
			"and at least one session with each server."},
	{name: "held", shape: &shape{form: integer, min: 1, max: MaxHeld}, initial: number(DefaultHeld),
		doc: "The maximum number of calls of one caller that wait for approvers. Further calls that a policy holds are refused (`too_many_held`)."},
	{name: "rate", shape: rateShape, absent: true, example: "{identity: {per_minute: 120}}",
		doc: "How often agents may use the gateway, on each replica. Without this key, it is not limited."},
}}

// Kinds of message of a web hook.
const (
	HookRequested = "requested"
	HookReminder  = "reminder"
	HookDecided   = "decided"
)

// hookEvents are the kinds of message, which are also the default of a web hook.
func hookEvents() []string { return []string{HookRequested, HookReminder, HookDecided} }

var hookShape = &shape{form: object, keys: []key{
	{name: "url", shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL", check: checkHookURL},
		required: true, example: `"https://chat.example.com/hooks/pgfsm"`,
		doc: "The receiver's address: https, or http on this machine. Put no secret into it: messages are signed."},
	{name: "secret", shape: &shape{form: text, secret: true, what: "a secret", check: checkReferences}, required: true,
		doc: "The key that signs messages (Standard Webhooks): `whsec_` and base64, or any text; 24 bytes or more. May contain references, and is a " +
			"secret. Only `serve` and `approvals serve` read it.",
		example: `"${env:HOOK_SECRET}"`},
	{name: "events", shape: &shape{form: list, min: 1, max: int64(len(hookEvents())), unique: ".", what: "kind of message",
		each: &shape{form: text, enum: hookEvents()}}, example: "[decided]",
		doc: "The events that the web hook receives: `requested` (a call is held), `reminder` (it expires soon), `decided`. Default: all."},
}}

var summaryModes = []string{policy.SummaryAsked, policy.SummaryAlways, policy.SummaryNever}

// configuration is the table of keys, from which parser, schema and documentation are made.
var configuration = &shape{form: object, cross: crossNames, keys: []key{
	{name: "version", shape: &shape{form: integer, min: Version, max: Version}, required: true, example: number(Version),
		doc: "The version of this format."},
	{name: "env", shape: plainName, initial: "dev", doc: "The environment, for policies: `env` in conditions."},
	{name: "servers", required: true,
		shape:   &shape{form: table, min: 1, max: policy.MaxServers, name: plainName, each: serverShape, what: "server"},
		doc:     "MCP servers, by name. The other keys refer to this name. An entry has the form of an entry in a client's `mcpServers`.",
		example: `{docs: {type: http, url: "https://docs.example.com/mcp"}}`},
	{name: "mcp_servers", shape: filePath, example: ".mcp.json",
		doc: "A client's JSON file with `mcpServers`. pgfsm uses only those of its servers that `servers` lists by name and `digest`."},
	{name: "allowlist", shape: allowlistKey, required: true, example: "allowlist.json",
		doc: "A JSON file `{\"server\": [\"tool\", …]}`: the tools that may be called at all. `{}` allows none. " +
			"`{\"server\": {\"tool\": {\"pin\": \"sha256:…\"}}}` pins a tool to one definition. " +
			"`{default: FILE, groups: {GROUP: FILE}}` allows more tools to actors in a group of their identity provider."},
	{name: "grants", shape: &shape{form: list, max: policy.MaxGrants, each: filePath}, example: "[grant.yaml]",
		doc: "Grant files, for every run. All of them must permit a call."},
	{name: "risk", shape: filePath, example: "risk.yaml",
		doc: "A file of risk rules, which rate calls. Default: no call is rated."},
	{name: "policy", shape: filePath, example: "policy.yaml",
		doc: "A file of policies, which allow, deny or hold calls. Without this key, the allowlist decides. With it, a call that no policy matches is " +
			"denied."},
	{name: "roles", example: `{release-manager: [alice@example.com]}`,
		shape: &shape{form: table, max: MaxRoles, name: plainName, what: "role",
			each: actors},
		doc: "The actors of each role, for `actor.roles` in conditions and `approvers` of policies. Write each actor's verified name; letter case " +
			"matters. `group:NAME` is everybody in a group of their identity provider."},
	{name: "input", shape: inputShape, doc: "The input rules, which refuse requests before any other step."},
	{name: "planner", shape: plannerShape, doc: "How pgfsm makes a plan from a request."},
	{name: "outputs", shape: &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
		each: &shape{form: table, max: MaxOutputs, name: toolName, each: filePath, what: "tool"}},
		doc:     "Output types: for a server and tool, a file with the JSON Schema of its structured content.",
		example: "{mcp-policy-kb: {fetch_policy_entry: schemas/policy-entry.json}}"},
	{name: "summary", doc: "When pgfsm summarizes a typed result.", shape: &shape{form: object, keys: []key{
		{name: "mode", shape: &shape{form: text, enum: summaryModes}, initial: policy.SummaryAsked,
			doc: "`asked`: if the request contains summarize or summarise, in any letter case. `always`, `never`."},
	}}},
	{name: "traces", doc: "The traces, which record runs if there is no ledger.", shape: &shape{form: object, keys: []key{
		{name: "dir", shape: filePath, initial: "traces", doc: "The folder for traces."},
	}}},
	{name: "ledger", shape: ledgerURL, example: `"sqlite:pgfsm.db"`,
		doc: "The durable store of runs: `sqlite:` and a file, which pgfsm creates if it does not exist, or the URL of a database in PostgreSQL, which " +
			"`pgfsm ledger init` prepares. A database's URL may contain references; on another machine it needs `sslmode`. With this key, pgfsm records runs in the " +
			"ledger and not in `traces.dir`, and approvers can decide about held calls."},
	{name: "checkpoints", shape: checkpointsShape, absent: true,
		doc:     "How the states of the ledger's log are signed. A checkpoint that is stored elsewhere shows later whether the log was changed.",
		example: `{key: pgfsm-log.key, dir: checkpoints, every: 1h}`},
	{name: "approvals", doc: "How held calls wait, and how approvers are notified.", shape: &shape{form: object, keys: []key{
		{name: "hold", shape: &shape{form: duration, max: MaxHold}, initial: "0s",
			doc: "How long the gateway keeps the request of a held call open for a decision, before it answers that the call waits. `0s`: it answers at once."},
		{name: "on_pending", shape: &shape{form: text, enum: []string{PendingResult, PendingError}}, initial: PendingResult,
			doc: "The answer to the agent after `hold`: a `result` that says that the call waits, or an `error`."},
		{name: "remind_before", shape: &shape{form: duration, max: MaxRemindBefore}, initial: writeDuration(DefaultRemindBefore),
			doc: "How long before a held call expires the web hooks get a reminder, if the call still waits. A call that waits for no longer than that gets " +
				"none. `0s`: no reminders."},
		{name: "hooks", shape: &shape{form: list, max: MaxHooks, unique: "url", what: "hook", each: hookShape},
			doc:     "Web hooks: `pgfsm serve` and `pgfsm approvals serve` send them messages about held calls.",
			example: `[{url: "https://chat.example.com/hooks/pgfsm", secret: "${env:HOOK_SECRET}"}]`},
	}}},
	{name: "identity", shape: identityShape, doc: "Identity providers (OpenID Connect), for agents and for people."},
	{name: "telemetry", doc: "What `pgfsm serve` tells other systems about its work, besides the metrics of the admin address. It does not affect decisions.",
		shape: &shape{form: object, keys: []key{
			{name: "otlp", shape: otlpShape, absent: true, doc: "Spans of requests and calls, for a collector of OpenTelemetry (OTLP/HTTP).",
				example: `{endpoint: "https://otel.example.com:4318", headers: {Authorization: "Bearer ${env:OTEL_TOKEN}"}}`},
		}}},
	{name: "serve", shape: serveShape, doc: "Settings of the gateway, `pgfsm serve`. They do not affect decisions."},
	{name: "catalog_max_age", shape: &shape{form: duration, max: MaxCatalogAge}, initial: writeDuration(DefaultCatalogAge),
		doc: "The maximum age of a cached tool list when the gateway judges a call by it. `0s`: the gateway lists the tools before every call."},
	{name: "limits", shape: limitsShape, doc: "Limits of a run, and of how often agents call. Zero never means unlimited."},
}}

// allowlistKey is the path of an allowlist file, or one for everybody and further ones for groups.
var allowlistKey = &shape{form: text, what: "a path", check: checkPath, alt: &shape{form: object, keys: []key{
	{name: "default", shape: filePath, required: true, example: "allowlist.json", doc: "The allowlist file for every actor."},
	{name: "groups", shape: &shape{form: table, max: MaxRoles, name: groupName, what: "group", each: filePath},
		example: "{oncall: oncall.json}", doc: "Allowlist files for actors in a group of their identity provider, besides `default`."},
}}}

// allowlist is the shape of the allowlist file.
var allowlist = &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
	each: &shape{form: list, max: MaxTools, unique: ".", what: "tool", each: toolName,
		alt: &shape{form: table, max: MaxTools, name: toolName, what: "tool",
			each: &shape{form: object, keys: []key{
				{name: "pin", shape: digest, doc: "The digest of the tool's definition, as `pgfsm pins` shows it."},
			}}}}}

func number(n int64) string { return strconv.FormatInt(n, 10) }
