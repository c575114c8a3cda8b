package main

import (
	"fmt"
	"strings"
)

// attackAllowlist allows little of what the servers list, and some that they do not list or that cannot be used.
const attackAllowlist = `{
  "files": {"look": {}, "café": {}, "read": {}, "number": {}, "closed": {}, "tree": {}, "nothing": {}, "words": {},
    "twice": {}, "broken": {}, "absent": {},
    "drifted": {"pin": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}},
  "other": ["fetch"],
  "down": ["look"]
}`

// otherTools are those of a second server: a tool that the first has too, which is not allowed here, and one more.
const otherTools = `{"tools":[
  {"name":"look","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},
  {"name":"fetch","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`

// lookSchema is that of the tool that most attacks are aimed at: a required text, things at some depth, and one place
// that takes anything.
const lookSchema = `{"type":"object","required":["path"],"properties":{
  "path":{"type":"string"},"lines":{"type":"number"},"any":true,
  "deep":{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{
    "key":{"type":"string"},"more":{"type":"object","properties":{"key":{"type":"string"}}}}}}}}}}`

func listing(tools ...string) string { return `{"tools":[` + strings.Join(tools, ",") + `]}` }

func toolDef(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":%s,"annotations":{"readOnlyHint":true}}`, name, schema)
}

// basicTools holds what is allowed, what is not, and what looks like it.
func basicTools() string {
	const path = `{"type":"object","properties":{"path":{"type":"string"}}}`
	return listing(
		toolDef("look", lookSchema),
		toolDef("delete_file", path),
		toolDef("look_all", path),
		toolDef("loo", path),
		toolDef("LOOK", path),
		toolDef("look ", path),
		toolDef("l\u043e\u043ek", path), // Cyrillic letters
		toolDef("café", path),
		toolDef("cafe\u0301", path), // the same, composed otherwise
		toolDef("files__look", path),
		toolDef("twice", path),
		toolDef("twice", path),
		toolDef("drifted", path),
		toolDef("nothing", `{"type":"object"}`),
		toolDef("broken", `{"type":"object","$ref":"#"}`),
	)
}

// callOf is a plan to call a tool of the server "files".
func callOf(tool, args string) string { return planOf("files", tool, args) }

func planOf(server, tool, args string) string {
	return `{"type":"call_tool","server":"` + server + `","tool":"` + tool + `","args":` + args + `}`
}

// callsTool is a twin in which what is planned stands in canonical form already.
func callsTool(tool, args string) twin { return twin{callOf(tool, args), "files", tool, args} }

func callsLook(args string) twin { return callsTool("look", args) }

// looks is a twin that says something in another spelling than it must arrive in.
func looks(says, args string) twin { return twin{says, "files", "look", args} }

// asks is a twin that asks back.
func asks(question string) twin { return twin{says: questionOf(question)} }

func questionOf(question string) string {
	return `{"type":"final_answer","answer":"` + question + `","needs_more_info":true}`
}

// richResult is what every call returns: the typed payload that summaries are about.
const richResult = `{"body":"Personal data must never be written to logs. ` +
	`Logs are kept for 30 days, then deleted on 2024-03-01.` +
	`\nOwner: the Privacy Office (privacy@example.com), version 1.10 of March 3, 2024. ` +
	`It costs 10 million dollars, -5 degrees and 1,000 tickets of type INC0010023; see GDPR.",` +
	`"cjk":"個人情報を記録しない","deep":{"er":[{"name":"Ada Lovelace","ok":true},{"name":"Alan Turing","ok":false}]},` +
	`"empty":"","float":-1.50e3,` +
	`"hidden":"zero\u200bwidth text is here, and \u202ereversed\u202c text","id":"policy-002",` +
	`"list":["never be written to paper","red green blue"],` +
	`"markdown":"see [the handbook](https://example.com) for more","mark":"!!!","none":null,` +
	`"number":42,"past 2^53":9007199254740993,` +
	`"quote":"a \"quoted\" word été and cafe\u0301 crème <b>bold text here</b>",` +
	`"ranges":"between 5-10 days, 10.5 hours, 100 tickets, ` +
	`10% or $10, v10, 10:30, 10 000 rows, two hundred and five users",` +
	`"rule":"non-compliant with the rules of the house","title":"PII Logging",` +
	`"unchecked words as a name":"x","word":"draft"}`

// richTools is the one tool whose results are typed.
func richTools() string {
	return listing(`{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}},"outputSchema":{
		"type":"object","required":["id","title"],"additionalProperties":{"type":["string","number","null","array"]},
		"properties":{
		"id":{"type":"string"},"title":{"type":"string"},"deep":{"type":"object","properties":{"er":{"type":"array","items":{
		"type":"object","properties":{"name":{"type":"string"},"ok":{"type":"boolean"}}}}}}}},
		"annotations":{"readOnlyHint":true}}`)
}
