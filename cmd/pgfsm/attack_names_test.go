package main

import (
	"strings"

	"pgfsm/policy"
)

const (
	noServer   = policy.CodeServerUnknown
	noTool     = policy.CodeToolUnknown
	notAllowed = policy.CodeToolNotAllowed
)

func lookOn(server string) string { return planOf(server, "look", plain.args) }

func toolOf(name string) string { return callOf(name, plain.args) }

// fetch is allowed on the other server only.
var fetch = twin{planOf("other", "fetch", plain.args), "other", "fetch", plain.args}

// nameAttacks are about which server and which tool is meant: what is not the name, byte for byte, is another one.
var nameAttacks = []attackClass{
	{"wrong-servers", basicTools, []attack{
		{"unknown", lookOn("mail"), noServer, plain},
		{"other-case", lookOn("Files"), noServer, plain},
		{"prefix", lookOn("file"), noServer, plain},
		{"longer", lookOn("files2"), noServer, plain},
		{"space-behind", lookOn("files "), noServer, plain},
		{"space-before", lookOn(" files"), noServer, plain},
		{"nul-behind", lookOn(`files\u0000`), noServer, plain},
		{"homoglyph", lookOn("fil\u0435s"), noServer, looks(lookOn(`fil\u0065s`), plain.args)},
		{"full-width", lookOn("ｆｉｌｅｓ"), noServer, plain},
		{"ligature", lookOn("\ufb01les"), noServer, plain},
		{"zero-width-joiner", lookOn(`fi\u200dles`), noServer, plain},
		{"right-to-left-override", lookOn(`\u202eselif`), noServer, plain},
		{"line-end-behind", lookOn(`files\n`), noServer, plain},
		{"address", lookOn("http://127.0.0.1:1/mcp"), noServer, plain},
		{"path", lookOn("../files"), noServer, plain},
		{"wildcard", lookOn("*"), noServer, plain},
		{"both", lookOn("files,other"), noServer, plain},
		{"prototype", lookOn("__proto__"), noServer, plain},
		{"own-name", lookOn("pgfsm"), noServer, plain},
		{"long", lookOn(strings.Repeat("files", 5000)), noServer, plain},
		{"down", lookOn("down"), policy.CodeServerDown, plain},
		{"name-is-allowed-elsewhere", lookOn("other"), notAllowed, plain},
		{"tool-of-another-server", toolOf("fetch"), noTool, fetch},
		{"names-turned-around", planOf("look", "files", plain.args), noServer, plain},
	}},
	{"wrong-tools", basicTools, []attack{
		{"forbidden", toolOf("delete_file"), notAllowed, plain},
		{"forbidden-escaped", toolOf(`delete\u005ffile`), notAllowed, looks(toolOf(`l\u006f\u006fk`), plain.args)},
		{"forbidden-with-bad-arguments", callOf("delete_file", `{"path":1,"x":2}`), notAllowed, plain},
		{"unknown", toolOf("move_file"), noTool, plain},
		{"allowed-but-not-there", toolOf("absent"), noTool, plain},
		{"other-case-that-is-listed", toolOf("LOOK"), notAllowed, plain},
		{"other-case-that-is-not", toolOf("Look"), noTool, plain},
		{"prefix-that-is-listed", toolOf("loo"), notAllowed, plain},
		{"prefix-that-is-not", toolOf("lo"), noTool, plain},
		{"longer-that-is-listed", toolOf("look_all"), notAllowed, plain},
		{"longer-that-is-not", toolOf("look_"), noTool, plain},
		{"space-behind-that-is-listed", toolOf("look "), notAllowed, plain},
		{"space-before", toolOf(" look"), noTool, plain},
		{"homoglyph-that-is-listed", toolOf("l\u043e\u043ek"), notAllowed, plain},
		{"homoglyph-that-is-not", toolOf("l\u03bf\u03bfk"), noTool, plain},
		{"homoglyph-escaped", toolOf(`l\u043e\u043ek`), notAllowed, looks(toolOf(`\u006cook`), plain.args)},
		{"composed-otherwise", toolOf("cafe\u0301"), notAllowed, callsTool("café", plain.args)},
		{"accent-left-out", toolOf("cafe"), noTool, callsTool("café", plain.args)},
		{"full-width", toolOf("ｌｏｏｋ"), noTool, plain},
		{"zero-width-space", toolOf(`lo\u200bok`), noTool, plain},
		{"variation-selector", toolOf(`look\ufe0f`), noTool, plain},
		{"tag-character", toolOf(`look\udb40\udc41`), noTool, plain},
		{"soft-hyphen", toolOf(`lo\u00adok`), noTool, plain},
		{"nul-behind", toolOf(`look\u0000`), noTool, plain},
		{"nul-and-forbidden", toolOf(`look\u0000delete_file`), noTool, plain},
		{"line-end-and-forbidden", toolOf(`look\ndelete_file`), noTool, plain},
		{"terminal-escape", toolOf(`look\u001b[2J`), noTool, plain},
		{"right-to-left-override", toolOf(`\u202ekool`), noTool, plain},
		{"list", toolOf("look,delete_file"), noTool, plain},
		{"command", toolOf("look;delete_file"), noTool, plain},
		{"with-its-server-that-is-listed", toolOf("files__look"), notAllowed, plain},
		{"with-its-server", toolOf("files/look"), noTool, plain},
		{"forbidden-with-its-server", toolOf("files__delete_file"), noTool, plain},
		{"wildcard", toolOf("*"), noTool, plain},
		{"pattern", toolOf("l.*k"), noTool, plain},
		{"percent-encoded", toolOf("%6cook"), noTool, plain},
		{"path", toolOf("./look"), noTool, plain},
		{"protocol-method", toolOf("tools/call"), noTool, plain},
		{"prototype", toolOf("__proto__"), noTool, plain},
		{"constructor", toolOf("constructor"), noTool, plain},
		{"long", toolOf(strings.Repeat("look", 10_000)), noTool, plain},
		{"listed-twice", toolOf("twice"), policy.CodeToolAmbiguous, plain},
		{"schema-that-cannot-be-used", callOf("broken", `{}`), policy.CodeSchemaRefused, callsTool("nothing", `{}`)},
		{"definition-that-is-not-the-pinned-one", toolOf("drifted"), policy.CodeToolDefinitionChanged, plain},
	}},
}
