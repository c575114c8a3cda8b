package main

import (
	"strings"

	"pgfsm/policy"
)

const notStrict = policy.CodePlanNotStrict

// plain is the twin that most attacks on the syntax stand beside.
var plain = callsLook(`{"path":"a.txt"}`)

// plainWith is the plain plan with one part of its text replaced.
func plainWith(was, is string) string {
	if !strings.Contains(plain.says, was) {
		panic("the plain plan does not hold " + was)
	}
	return strings.Replace(plain.says, was, is, 1)
}

// deepArgs are arguments with a list of objects in them.
func deepArgs(item string) string {
	return callOf("look", `{"deep":{"list":[`+item+`]},"path":"a.txt"}`)
}

func deepLook(item string) twin { return callsLook(`{"deep":{"list":[` + item + `]},"path":"a.txt"}`) }

// syntaxAttacks are about what JSON is.
var syntaxAttacks = []attackClass{
	{"duplicate-names", basicTools, []attack{
		{"type", plainWith(`"type":`, `"type":"final_answer","type":`), notStrict, plain},
		{"server", plainWith(`"server":`, `"server":"other","server":`), notStrict, plain},
		{"tool-first-forbidden", plainWith(`"tool":`, `"tool":"delete_file","tool":`), notStrict, plain},
		{"tool-last-forbidden", plainWith(`"look"`, `"look","tool":"delete_file"`), notStrict, plain},
		{"tool-equal-values", plainWith(`"look"`, `"look","tool":"look"`), notStrict, plain},
		{"tool-behind-args", plain.says[:len(plain.says)-1] + `,"tool":"delete_file"}`, notStrict, plain},
		{"args", plainWith(`"args":`, `"args":{},"args":`), notStrict, plain},
		{"escaped-tool", plainWith(`"tool":`, `"t\u006fol":"delete_file","tool":`), notStrict,
			looks(plainWith(`"tool":`, `"t\u006fol":`), plain.args)},
		{"both-escaped", plainWith(`"tool":`, `"t\u006fol":"delete_file","to\u006Fl":`), notStrict,
			looks(plainWith(`"tool":`, `"to\u006Fl":`), plain.args)},
		{"unknown-member-twice", plainWith(`"tool":`, `"x":1,"x":2,"tool":`), notStrict, plain},
		{"argument", plainWith(`"path":`, `"path":"/etc/passwd","path":`), notStrict, plain},
		{"argument-escaped", plainWith(`"path":`, `"p\u0061th":"/etc/passwd","path":`), notStrict,
			looks(plainWith(`"path":`, `"p\u0061th":`), plain.args)},
		{"argument-null-first", plainWith(`"path":`, `"path":null,"path":`), notStrict, plain},
		{"in-nested-object", deepArgs(`{"key":"a","key":"b"}`), notStrict, deepLook(`{"key":"a"}`)},
		{"in-nested-object-escaped", deepArgs(`{"key":"a","\u006bey":"b"}`), notStrict,
			looks(deepArgs(`{"\u006bey":"a"}`), `{"deep":{"list":[{"key":"a"}]},"path":"a.txt"}`)},
		{"in-second-item", deepArgs(`{"key":"a"},{"more":{"key":"b","key":"b"}}`), notStrict,
			deepLook(`{"key":"a"},{"more":{"key":"b"}}`)},
		{"where-anything-goes", callOf("look", `{"any":{"a":1,"a":2},"path":"a"}`), notStrict,
			callsLook(`{"any":{"a":1,"b":2},"path":"a"}`)},
		{"deep-where-anything-goes", callOf("look", `{"any":[[[{"x":{"a":1,"a":1}}]]],"path":"a"}`), notStrict,
			callsLook(`{"any":[[[{"x":{"a":1,"b":1}}]]],"path":"a"}`)},
		{"empty-names", callOf("look", `{"any":{"":1,"":2},"path":"a"}`), notStrict,
			callsLook(`{"any":{"":1," ":2},"path":"a"}`)},
		{"surrogate-pair-and-character", callOf("look", `{"any":{"😀":1,"\ud83d\ude00":2},"path":"a"}`), notStrict,
			looks(callOf("look", `{"any":{"😀":1,"\ud83d\ude01":2},"path":"a"}`), `{"any":{"😀":1,"😁":2},"path":"a"}`)},
		{"escaped-slash", callOf("look", `{"any":{"a/b":1,"a\/b":2},"path":"a"}`), notStrict,
			looks(callOf("look", `{"any":{"a\/b":2},"path":"a"}`), `{"any":{"a/b":2},"path":"a"}`)},
		{"flag-of-a-question", `{"type":"final_answer","answer":"Which?","needs_more_info":false,"needs_more_info":true}`,
			notStrict, asks("Which?")},
		{"answer-of-a-question", `{"type":"final_answer","answer":"Done.","answer":"Which?","needs_more_info":true}`,
			notStrict, asks("Which?")},
	}},
	{"wrapping", basicTools, []attack{
		{"fence", "```json\n" + plain.says + "\n```", notStrict, looks("\n\n"+plain.says+"\n\n", plain.args)},
		{"fence-without-language", "```\n" + plain.says + "\n```", notStrict, plain},
		{"fence-that-opens-only", "```json\n" + plain.says, notStrict, plain},
		{"tildes", "~~~\n" + plain.says + "\n~~~", notStrict, plain},
		{"inline-code", "`" + plain.says + "`", notStrict, plain},
		{"text-before", "Here is the plan: " + plain.says, notStrict, looks("\t"+plain.says, plain.args)},
		{"text-behind", plain.says + "\nI hope this helps!", notStrict, looks(plain.says+"\r\n ", plain.args)},
		{"text-on-both-sides", "Sure.\n" + plain.says + "\nDone.", notStrict, plain},
		{"thoughts", "<think>The user wants a file.</think>" + plain.says, notStrict, plain},
		{"tool-call-tags", "<tool_call>" + plain.says + "</tool_call>", notStrict, plain},
		{"tool-call-marker", "[TOOL_CALLS]" + plain.says, notStrict, plain},
		{"xml", `<call server="files" tool="look"><path>a.txt</path></call>`, notStrict, plain},
		{"yaml", "type: call_tool\nserver: files\ntool: look\nargs: {path: a.txt}", notStrict, plain},
		{"prose", "I would call look on files with the path a.txt.", notStrict, plain},
		{"two-objects", plain.says + plain.says, notStrict, plain},
		{"two-objects-second-forbidden", plain.says + "\n" + callOf("delete_file", `{"path":"a.txt"}`), notStrict, plain},
		{"object-and-empty-object", plain.says + "{}", notStrict, plain},
		{"object-and-brace", plain.says + "}", notStrict, plain},
		{"object-and-comma", plain.says + ",", notStrict, plain},
		{"object-and-null", plain.says + " null", notStrict, plain},
		{"list-of-one-plan", "[" + plain.says + "]", notStrict, plain},
		{"list-of-two-plans", "[" + plain.says + "," + plain.says + "]", notStrict, plain},
		{"plan-in-a-string", `"` + strings.ReplaceAll(plain.says, `"`, `\"`) + `"`, notStrict, plain},
		{"plan-in-an-object", `{"plan":` + plain.says + `}`, policy.CodePlanInvalid, plain},
		{"byte-order-mark", "\ufeff" + plain.says, notStrict, looks(" "+plain.says, plain.args)},
		{"byte-order-mark-behind", plain.says + "\ufeff", notStrict, plain},
		{"byte-order-mark-inside", plainWith(`"tool"`, "\ufeff"+`"tool"`), notStrict, looks(plainWith(`"tool"`, " \n"+`"tool"`),
			plain.args)},
		{"script-prefix", ")]}'\n" + plain.says, notStrict, plain},
		{"record-separator", "\x1e" + plain.says + "\n", notStrict, plain},
		{"nul-behind", plain.says + "\x00", notStrict, plain},
		{"form-feed", plain.says + "\f", notStrict, looks(plain.says+"\n", plain.args)},
		{"vertical-tab-inside", plainWith(`"tool"`, "\v"+`"tool"`), notStrict, looks(plainWith(`"tool"`, "\t"+`"tool"`),
			plain.args)},
		{"no-break-space-before", "\u00a0" + plain.says, notStrict, looks(" "+plain.says, plain.args)},
		{"line-separator-behind", plain.says + "\u2028", notStrict, plain},
		{"zero-width-space-before", "\u200b" + plain.says, notStrict, plain},
		{"next-line-inside", plainWith(`,"tool"`, ",\u0085"+`"tool"`), notStrict, looks(plainWith(`,"tool"`, " ,\n"+`"tool"`),
			plain.args)},
		{"block-comment", "/* look */" + plain.says, notStrict, plain},
		{"line-comment", plain.says + " // look", notStrict, plain},
		{"hash-comment", "# look\n" + plain.says, notStrict, plain},
		{"trailing-comma", plainWith(`"a.txt"}`, `"a.txt",}`), notStrict, plain},
		{"missing-comma", plainWith(`,"tool"`, ` "tool"`), notStrict, plain},
		{"single-quotes", strings.ReplaceAll(plain.says, `"`, `'`), notStrict, plain},
		{"typographic-quotes", strings.ReplaceAll(plain.says, `"`, "\u201d"), notStrict, plain},
		{"names-without-quotes", strings.NewReplacer(`"tool"`, `tool`, `"args"`, `args`).Replace(plain.says), notStrict,
			plain},
		{"cut-off", plain.says[:len(plain.says)-1], notStrict, plain},
		{"cut-off-in-a-string", plain.says[:len(plain.says)-4], notStrict, plain},
		{"wrong-bracket", plain.says[:len(plain.says)-1] + "]", notStrict, plain},
		{"null", "null", notStrict, plain},
		{"true", "true", notStrict, plain},
		{"number", "1", notStrict, plain},
		{"empty-list", "[]", notStrict, plain},
		{"capital-literal", callOf("look", `{"any":True,"path":"a"}`), notStrict, callsLook(`{"any":true,"path":"a"}`)},
		{"nothing", "", policy.CodePlanEmpty, plain},
		{"white-space", " \t\r\n ", policy.CodePlanEmpty, plain},
		{"only-a-byte-order-mark", "\ufeff", notStrict, plain},
		{"only-a-zero-width-space", "\u200b", notStrict, plain},
	}},
	{"number-literals", basicTools, []attack{
		{"nan", linesOf("NaN"), notStrict, callsLook(linesArgs("0"))},
		{"infinity", linesOf("Infinity"), notStrict, callsLook(linesArgs("1e308"))},
		{"minus-infinity", linesOf("-Infinity"), notStrict, callsLook(linesArgs("-1e308"))},
		{"plus-sign", linesOf("+1"), notStrict, callsLook(linesArgs("1"))},
		{"leading-zero", linesOf("01"), notStrict, callsLook(linesArgs("10"))},
		{"minus-leading-zero", linesOf("-01"), notStrict, callsLook(linesArgs("-0"))},
		{"no-digit-before-the-point", linesOf(".5"), notStrict, callsLook(linesArgs("0.5"))},
		{"no-digit-behind-the-point", linesOf("1."), notStrict, callsLook(linesArgs("1.0"))},
		{"no-digit-in-the-exponent", linesOf("1e"), notStrict, callsLook(linesArgs("1e0"))},
		{"sign-alone-in-the-exponent", linesOf("1e+"), notStrict, callsLook(linesArgs("1E+2"))},
		{"hexadecimal", linesOf("0x10"), notStrict, callsLook(linesArgs("16"))},
		{"octal", linesOf("0o17"), notStrict, callsLook(linesArgs("15"))},
		{"underscore", linesOf("1_000"), notStrict, callsLook(linesArgs("1000"))},
		{"big-integer-suffix", linesOf("1n"), notStrict, callsLook(linesArgs("123456789012345678901234567890"))},
		{"two-signs", linesOf("--1"), notStrict, callsLook(linesArgs("-1"))},
		{"minus-alone", linesOf("-"), notStrict, callsLook(linesArgs("-1.50"))},
		{"full-width-digit", linesOf("１"), notStrict, callsLook(linesArgs("1.00"))},
	}},
	{"text", basicTools, []attack{
		{"high-surrogate", pathOf(`\ud83d`), notStrict, looks(pathOf(`\ud83d\ude00`), pathArgs("😀"))},
		{"low-surrogate", pathOf(`\ude00`), notStrict, looks(pathOf(`\ud7ff`), pathArgs("\ud7ff"))},
		{"surrogates-in-the-wrong-order", pathOf(`\ude00\ud83d`), notStrict, looks(pathOf(`\uD83D\uDE00`), pathArgs("😀"))},
		{"two-high-surrogates", pathOf(`\ud83d\ud83d`), notStrict, looks(pathOf(`\ue000`), pathArgs("\ue000"))},
		{"high-surrogate-and-text", pathOf(`\ud83dx`), notStrict, callsLook(pathArgs("x"))},
		{"surrogate-in-a-name", callOf("look", `{"any":{"\udead":1},"path":"a"}`), notStrict,
			looks(callOf("look", `{"any":{"\uffff":1},"path":"a"}`), "{\"any\":{\"\uffff\":1},\"path\":\"a\"}")},
		{"surrogate-in-the-tool", callOf(`look\ud800`, plain.args), notStrict, plain},
		{"surrogate-in-a-question", questionOf(`Which\ud800?`), notStrict, asks(`Which\u003f`)},
		{"raw-line-feed", pathOf("a\nb"), notStrict, callsLook(pathArgs(`a\nb`))},
		{"raw-tab", pathOf("a\tb"), notStrict, callsLook(pathArgs(`a\tb`))},
		{"raw-nul", pathOf("a\x00b"), notStrict, callsLook(pathArgs(`a\u0000b`))},
		{"raw-escape", pathOf("\x1b[31m"), notStrict, looks(pathOf(`\u001B[31m`), pathArgs(`\u001b[31m`))},
		{"raw-unit-separator", pathOf("a\x1fb"), notStrict, callsLook(pathArgs("a\x7fb"))},
		{"raw-line-feed-in-a-name", callOf("look", "{\"any\":{\"a\nb\":1},\"path\":\"a\"}"), notStrict,
			callsLook(`{"any":{"a\nb":1},"path":"a"}`)},
		{"raw-carriage-return-in-the-tool", callOf("look\r", plain.args), notStrict, plain},
		{"escape-cut-off", pathOf(`\u12`), notStrict, looks(pathOf(`\u0012`), pathArgs(`\u0012`))},
		{"escape-by-two-digits", pathOf(`\x41`), notStrict, looks(pathOf(`\u0041`), pathArgs("A"))},
		{"escape-in-braces", pathOf(`\u{41}`), notStrict, looks(pathOf(`{\u0041}`), pathArgs("{A}"))},
		{"escape-with-capital-u", pathOf(`\U00000041`), notStrict, looks(pathOf(`U\u0041`), pathArgs("UA"))},
		{"escaped-apostrophe", pathOf(`a\'b`), notStrict, callsLook(pathArgs(`a'b`))},
		{"escaped-line-end", pathOf("a\\\nb"), notStrict, looks(pathOf(`a\u005cb`), pathArgs(`a\\b`))},
		{"escaped-zero", pathOf(`a\0b`), notStrict, callsLook(pathArgs("a0b"))},
		{"quote-that-ends-the-string", pathOf(`a","path":"b`), notStrict, callsLook(pathArgs(`a\",\"path\":\"b`))},
	}},
}

func linesArgs(n string) string { return `{"lines":` + n + `,"path":"a"}` }

func linesOf(n string) string { return callOf("look", linesArgs(n)) }

func pathArgs(text string) string { return `{"path":"` + text + `"}` }

func pathOf(text string) string { return callOf("look", pathArgs(text)) }
