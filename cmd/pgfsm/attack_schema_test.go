package main

import "strings"

// A row is one keyword of a schema, as a property of a tool: a value that violates it, and one that does not.
type row struct{ name, schema, bad, good string }

// rowTool is a tool with a property for each row.
func rowTool(name, head, tail string, rows []row) string {
	properties := make([]string, len(rows))
	for i, r := range rows {
		properties[i] = `"` + r.name + `":` + r.schema
	}
	return toolDef(name, `{`+head+`"type":"object","properties":{`+strings.Join(properties, ",\n")+`}`+tail+`}`)
}

// rowAttacks violate one keyword after the other.
func rowAttacks(tool string, rows []row) []attack {
	list := make([]attack, len(rows))
	for i, r := range rows {
		good := `{}`
		if r.good != "" { // nothing that is there would do
			good = `{"` + r.name + `":` + r.good + `}`
		}
		list[i] = attack{r.name, callOf(tool, `{"`+r.name+`":`+r.bad+`}`), badArgs, callsTool(tool, good)}
	}
	return list
}

func rowClass(name, tool, head, tail string, rows []row) attackClass {
	return attackClass{name, func() string { return listing(rowTool(tool, head, tail, rows)) }, rowAttacks(tool, rows)}
}

// schemaAttacks are about what a tool's schema says.
func schemaAttacks() []attackClass {
	classes := []attackClass{
		rowClass("numbers", "number", "", "", numberRows),
		rowClass("closed-world", "closed", "", closedDefs, closedRows),
	}
	for i, d := range dialects {
		var rows []row
		for _, k := range keywords {
			if k.from <= i && i <= k.to && (i != dNone || k.from >= d2019) {
				rows = append(rows, k.row)
			}
		}
		classes = append(classes, rowClass("keywords-"+d.name, "words", d.head, d.defs, rows))
	}
	return classes
}

// dialects are what $schema may name. A schema that names none is of the last dialect: it is enough to try what the
// earlier ones do not know.
var dialects = []struct{ name, head, defs string }{
	{"draft-04", `"$schema":"http://json-schema.org/draft-04/schema#",`,
		`,"definitions":{"small":{"type":"integer","maximum":9}}`},
	{"draft-06", `"$schema":"http://json-schema.org/draft-06/schema#",`,
		`,"definitions":{"small":{"type":"integer","maximum":9}}`},
	{"draft-07", `"$schema":"http://json-schema.org/draft-07/schema#",`,
		`,"definitions":{"small":{"type":"integer","maximum":9}}`},
	{"2019-09", `"$schema":"https://json-schema.org/draft/2019-09/schema",`, laterDefs + `}`},
	{"2020-12", `"$schema":"https://json-schema.org/draft/2020-12/schema",`, laterDefs + `}`},
	{"no-dialect", ``, laterDefs + `}`},
}

const laterDefs = `,"$defs":{"small":{"type":"integer","maximum":9}`

// A keyword is a row of the dialects from and to.
type keyword struct {
	from, to int
	row
}

const (
	d4, d6, d7, d2019, d2020, dNone = 0, 1, 2, 3, 4, 5
	digits                          = `{"type":"integer"}`
	keyA                            = `"properties":{"a":{}}`
	keysAB                          = `"properties":{"a":{},"b":{}}`
)

// keywords are all keywords that say something of a value; format asserts up to draft-07 only, as the dialects say.
var keywords = []keyword{
	{d4, dNone, row{"type-null", `{"type":"null"}`, `0`, `null`}},
	{d4, dNone, row{"type-boolean", `{"type":"boolean"}`, `"true"`, `true`}},
	{d4, dNone, row{"type-integer", `{"type":"integer"}`, `1.5`, `7`}},
	{d4, dNone, row{"type-number", `{"type":"number"}`, `"1"`, `1.5`}},
	{d4, dNone, row{"type-string", `{"type":"string"}`, `1`, `"1"`}},
	{d4, dNone, row{"type-array", `{"type":"array"}`, `{}`, `[]`}},
	{d4, dNone, row{"type-object", `{"type":"object"}`, `[]`, `{}`}},
	{d4, dNone, row{"type-list", `{"type":["string","null"]}`, `false`, `null`}},
	{d4, dNone, row{"enum", `{"enum":["a",1,null,[1,{"b":2}]]}`, `[1,{"b":3}]`, `[1,{"b":2}]`}},
	{d4, dNone, row{"enum-type", `{"enum":[1]}`, `"1"`, `1`}},
	{d4, dNone, row{"multiple-of", `{"multipleOf":0.01}`, `0.075`, `0.07`}},
	{d4, dNone, row{"maximum", `{"maximum":5}`, `5.1`, `5`}},
	{d4, dNone, row{"minimum", `{"minimum":5}`, `4.9`, `5`}},
	{d4, d4, row{"exclusive-maximum", `{"maximum":5,"exclusiveMaximum":true}`, `5`, `4.9`}},
	{d4, d4, row{"exclusive-minimum", `{"minimum":5,"exclusiveMinimum":true}`, `5`, `5.1`}},
	{d6, dNone, row{"exclusive-maximum", `{"exclusiveMaximum":5}`, `5.0`, `4.9`}},
	{d6, dNone, row{"exclusive-minimum", `{"exclusiveMinimum":5}`, `5`, `5.1`}},
	{d4, dNone, row{"max-length", `{"maxLength":2}`, `"ééé"`, `"éé"`}},
	{d4, dNone, row{"min-length", `{"minLength":2}`, `"😀"`, `"😀😀"`}},
	{d4, dNone, row{"pattern", `{"pattern":"^[a-z]+$"}`, `"abc\n"`, `"abc"`}},
	{d4, dNone, row{"items", `{"items":{"type":"integer"}}`, `[1,"2"]`, `[1,2]`}},
	{d4, d2019, row{"items-tuple", `{"items":[{"type":"integer"},{"type":"string"}]}`, `[1,2]`, `[1,"2"]`}},
	{d4, d2019, row{"additional-items", `{"items":[{}],"additionalItems":false}`, `[1,2]`, `[1]`}},
	{d4, d2019, row{"additional-items-schema", `{"items":[{}],"additionalItems":{"type":"null"}}`, `[1,2]`, `[1,null]`}},
	{d4, dNone, row{"max-items", `{"maxItems":1}`, `[1,2]`, `[1]`}},
	{d4, dNone, row{"min-items", `{"minItems":2}`, `[1]`, `[1,2]`}},
	{d4, dNone, row{"unique-items", `{"uniqueItems":true}`, `[1,1.0]`, `[1,"1",true]`}},
	{d4, dNone, row{"unique-items-objects", `{"uniqueItems":true}`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[{"a":1},{"a":2}]`}},
	{d4, dNone, row{"max-properties", `{"maxProperties":1}`, `{"a":1,"b":2}`, `{"a":1}`}},
	{d4, dNone, row{"min-properties", `{"minProperties":2}`, `{"a":1}`, `{"a":1,"b":2}`}},
	{d4, dNone, row{"required", `{` + keysAB + `,"required":["a"]}`, `{"b":1}`, `{"a":1}`}},
	{d4, dNone, row{"properties", `{"properties":{"a":{"type":"string"}}}`, `{"a":1}`, `{"a":"1"}`}},
	{d4, dNone, row{"pattern-properties", `{"patternProperties":{"^x":{"type":"integer"}}}`, `{"xa":"1"}`, `{"xa":1}`}},
	{d4, dNone, row{"additional-properties", `{` + keyA + `,"additionalProperties":false}`, `{"b":1}`, `{"a":1}`}},
	{d4, dNone, row{"additional-properties-schema", `{` + keyA + `,"additionalProperties":{"type":"null"}}`, `{"b":1}`,
		`{"b":null}`}},
	{d4, d7, row{"dependencies", `{` + keysAB + `,"dependencies":{"a":["b"]}}`, `{"a":1}`, `{"a":1,"b":1}`}},
	{d4, d7, row{"dependencies-schema", `{` + keysAB + `,"dependencies":{"a":{"required":["b"]}}}`, `{"a":1}`, `{"b":1}`}},
	{d4, dNone, row{"all-of", `{"allOf":[{"type":"integer"},{"minimum":3}]}`, `2`, `3`}},
	{d4, dNone, row{"any-of", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"a"`, `null`}},
	{d4, dNone, row{"one-of-two", `{"oneOf":[{"minimum":2},{"maximum":4}]}`, `3`, `5`}},
	{d4, dNone, row{"one-of-none", `{"oneOf":[{"type":"integer"},{"type":"null"}]}`, `"a"`, `1`}},
	{d4, dNone, row{"not", `{"not":{"type":"string"}}`, `"a"`, `1`}},
	{d4, d7, row{"ref", `{"$ref":"#/definitions/small"}`, `10`, `9`}},
	{d2019, dNone, row{"ref", `{"$ref":"#/$defs/small"}`, `10`, `9`}},
	{d4, d7, row{"ref-hides-siblings", `{"$ref":"#/definitions/small","minimum":20}`, `21`, `9`}},
	{d2019, dNone, row{"ref-with-siblings", `{"$ref":"#/$defs/small","minimum":3}`, `2`, `3`}},
	{d4, d7, row{"format-date-time", `{"format":"date-time"}`, `"2024-13-01T00:00:00Z"`, `"2024-12-01T00:00:00Z"`}},
	{d4, d7, row{"format-email", `{"format":"email"}`, `"nobody"`, `"nobody@example.com"`}},
	{d4, d7, row{"format-hostname", `{"format":"hostname"}`, `"a..b"`, `"a.b"`}},
	{d4, d7, row{"format-ipv4", `{"format":"ipv4"}`, `"256.1.1.1"`, `"127.0.0.1"`}},
	{d4, d7, row{"format-ipv6", `{"format":"ipv6"}`, `"12345::"`, `"::1"`}},
	{d4, d7, row{"format-uri", `{"format":"uri"}`, `"//x"`, `"https://example.com/"`}},
	{d6, d7, row{"format-uri-reference", `{"format":"uri-reference"}`, `"a\\b"`, `"a/b"`}},
	{d6, d7, row{"format-uri-template", `{"format":"uri-template"}`, `"a/{b"`, `"a/{b}"`}},
	{d6, d7, row{"format-json-pointer", `{"format":"json-pointer"}`, `"a"`, `"/a"`}},
	{d7, d7, row{"format-relative-json-pointer", `{"format":"relative-json-pointer"}`, `"/a"`, `"1/a"`}},
	{d7, d7, row{"format-date", `{"format":"date"}`, `"2023-02-29"`, `"2024-02-29"`}},
	{d7, d7, row{"format-time", `{"format":"time"}`, `"24:00:00Z"`, `"23:00:00Z"`}},
	{d7, d7, row{"format-regex", `{"format":"regex"}`, `"("`, `"()"`}},
	{d6, dNone, row{"const", `{"const":{"a":[1]}}`, `{"a":[2]}`, `{"a":[1]}`}},
	{d6, dNone, row{"const-false", `{"const":false}`, `0`, `false`}},
	{d6, dNone, row{"contains", `{"contains":{"type":"string"}}`, `[1,2]`, `[1,"2"]`}},
	{d6, dNone, row{"property-names", `{"propertyNames":{"pattern":"^[a-z]$"}}`, `{"A":1}`, `{"a":1}`}},
	{d6, dNone, row{"schema-false", `false`, `null`, ``}},
	{d7, dNone, row{"if-then", `{` + keysAB + `,"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`,
		`{"a":1,"b":1}`}},
	{d7, dNone, row{"if-else", `{` + keysAB + `,"if":{"required":["a"]},"else":{"required":["b"]}}`, `{}`, `{"b":1}`}},
	{d2019, dNone, row{"max-contains", `{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `["a",1]`}},
	{d2019, dNone, row{"min-contains", `{"contains":{"type":"string"},"minContains":2}`, `["a",1]`, `["a","b"]`}},
	{d2019, dNone, row{"dependent-required", `{` + keysAB + `,"dependentRequired":{"a":["b"]}}`, `{"a":1}`,
		`{"a":1,"b":1}`}},
	{d2019, dNone, row{"dependent-schemas", `{` + keysAB + `,"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`,
		`{"b":1}`}},
	{d2019, d2019, row{"unevaluated-items", `{"allOf":[{"items":[{}]}],"unevaluatedItems":false}`, `[1,2]`, `[1]`}},
	{d2020, dNone, row{"unevaluated-items", `{"allOf":[{"prefixItems":[{}]}],"unevaluatedItems":false}`, `[1,2]`, `[1]`}},
	{d2019, dNone, row{"unevaluated-properties", `{"allOf":[{` + keyA + `}],"unevaluatedProperties":false}`, `{"b":1}`,
		`{"a":1}`}},
	{d2019, dNone, row{"unevaluated-schema", `{"allOf":[{` + keyA + `}],"unevaluatedProperties":{"type":"null"}}`,
		`{"b":1}`, `{"b":null}`}},
	{d2020, dNone, row{"prefix-items", `{"prefixItems":[` + digits + `,{"type":"string"}]}`, `[1,2]`, `[1,"2"]`}},
	{d2020, dNone, row{"items-behind-the-prefix", `{"prefixItems":[{}],"items":false}`, `[1,2]`, `[1]`}},
}

// numberRows hold numbers that become others as floating-point numbers.
var numberRows = []row{
	{"const-past-2-53", `{"const":9007199254740993}`, `9007199254740992`, `9007199254740993`},
	{"const-past-2-53-from-above", `{"const":9007199254740993}`, `9007199254740994`, `9007199254740993.0`},
	{"enum-past-2-53", `{"enum":[9007199254740993,1]}`, `9007199254740992`, `9007199254740993`},
	{"maximum-2-53", `{"maximum":9007199254740992}`, `9007199254740993`, `9007199254740992`},
	{"minimum-2-53", `{"minimum":-9007199254740992}`, `-9007199254740993`, `-9007199254740992`},
	{"exclusive-maximum-2-53", `{"exclusiveMaximum":9007199254740993}`, `9007199254740993`, `9007199254740992`},
	{"exclusive-minimum-2-53", `{"exclusiveMinimum":9007199254740992}`, `9007199254740992`, `9007199254740993`},
	{"multiple-past-2-53", `{"multipleOf":2}`, `9007199254740993`, `9007199254740994`},
	{"unique-past-2-53", `{"uniqueItems":true}`, `[9007199254740993,9007199254740993.0]`,
		`[9007199254740992,9007199254740993]`},
	{"integer-past-2-53", `{"type":"integer"}`, `9007199254740993.5`, `9007199254740993`},
	{"integer-and-a-little", `{"type":"integer"}`, `1.0000000000000000001`, `1`},
	{"maximum-2-63", `{"maximum":9223372036854775807}`, `9223372036854775808`, `9223372036854775807`},
	{"maximum-2-64", `{"maximum":18446744073709551615}`, `18446744073709551616`, `18446744073709551615`},
	{"maximum-of-the-largest-double", `{"maximum":1e308}`, `1e400`, `1e308`},
	{"minimum-of-the-largest-double", `{"minimum":-1e308}`, `-1e400`, `-1e308`},
	{"const-past-infinity", `{"const":1e400}`, `1e401`, `1e400`},
	{"unique-past-infinity", `{"uniqueItems":true}`, `[1e400,10e399]`, `[1e400,1e401]`},
	{"more-than-nothing", `{"exclusiveMinimum":0}`, `0e400`, `1e-400`},
	{"const-nothing", `{"const":0}`, `1e-400`, `-0.0`},
	{"tenths", `{"multipleOf":0.1}`, `0.35`, `0.3`},
	{"maximum-tenth", `{"maximum":0.1}`, `0.1000000000000000055511151231257827`, `0.1`},
	{"exponent-one-past-the-limit", `{"type":"number"}`, `1e513`, `1e512`},
	{"exponent-one-past-the-limit-below", `{"type":"number"}`, `1e-513`, `1e-512`},
	{"exponent-bomb", `{"type":"number"}`, `1e1000000000`, `1e400`},
	{"exponent-that-overflows", `{"type":"number"}`, `1e99999999999999999999`, `-1E+400`},
	{"digits-one-past-the-limit", `{"type":"integer"}`, strings.Repeat("1", 257), strings.Repeat("1", 256)},
	{"bomb-where-anything-goes", `true`, `[[1e1000000000]]`, `[[1e100]]`},
	{"text", `{"type":"number"}`, `"1e400"`, `1e400`},
	{"true", `{"type":"number"}`, `true`, `1`},
}

const closedDefs = `,"$defs":{"node":{"properties":{
  "name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}`

// closedRows hold keys that the schema does not name and does not speak of.
var closedRows = []row{
	{"object", `{` + keyA + `}`, `{"b":1}`, `{"a":1}`},
	{"object-beside-a-named-key", `{` + keyA + `}`, `{"a":1,"b":1}`, `{"a":1}`},
	{"object-in-an-object", `{"properties":{"o":{` + keyA + `}}}`, `{"o":{"b":1}}`, `{"o":{"a":1}}`},
	{"required-does-not-name", `{` + keyA + `,"required":["b"]}`, `{"a":1,"b":1}`, ``},
	{"key-in-another-case", `{` + keyA + `}`, `{"A":1}`, `{"a":1}`},
	{"key-with-nul", `{` + keyA + `}`, `{"a\u0000":1}`, `{"a":1}`},
	{"key-with-space", `{` + keyA + `}`, `{"a ":1}`, `{"a":1}`},
	{"key-that-looks-alike", `{` + keyA + `}`, `{"\u0430":1}`, `{"a":1}`},
	{"key-that-is-empty", `{` + keyA + `}`, `{"":1}`, `{"a":1}`},
	{"key-prototype", `{` + keyA + `}`, `{"__proto__":1}`, `{"a":1}`},
	{"items", `{"items":{` + keyA + `}}`, `[{"a":1},{"b":1}]`, `[{"a":1},{"a":2}]`},
	{"items-of-items", `{"items":{"items":{` + keyA + `}}}`, `[[{"b":1}]]`, `[[{"a":1}]]`},
	{"prefix-items", `{"prefixItems":[{` + keyA + `}]}`, `[{"b":1}]`, `[{"a":1}]`},
	{"pattern-of-keys", `{"patternProperties":{"^x-":{}}}`, `{"y-a":1}`, `{"x-a":1}`},
	{"under-a-pattern-of-keys", `{"patternProperties":{"^x":{` + keyA + `}}}`, `{"x":{"b":1}}`, `{"x":{"a":1}}`},
	{"under-additional-properties", `{"additionalProperties":{` + keyA + `}}`, `{"x":{"b":1}}`, `{"x":{"a":1}}`},
	{"under-unevaluated-properties", `{"unevaluatedProperties":{` + keyA + `}}`, `{"x":{"b":1}}`, `{"x":{"a":1}}`},
	{"all-of", `{"allOf":[{` + keyA + `},{"properties":{"b":{}}}]}`, `{"a":1,"c":1}`, `{"a":1,"b":1}`},
	{"any-of", `{"anyOf":[{` + keyA + `,"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"a":1,"c":1}`,
		`{"b":1}`},
	{"any-of-key-of-the-other",
		`{"anyOf":[{"properties":{"k":{"const":1},"a":{}}},{"properties":{"k":{"const":2},"b":{}}}]}`,
		`{"b":1,"k":1}`, `{"a":1,"k":1}`},
	{"one-of-or-null", `{"oneOf":[{` + keyA + `,"type":"object"},{"type":"null"}]}`, `{"b":1}`, `null`},
	{"reference", `{"$ref":"#/$defs/node"}`, `{"nome":"a"}`, `{"name":"a"}`},
	{"tree", `{"$ref":"#/$defs/node"}`, `{"kids":[{"kids":[{"nome":"a"}]}]}`, `{"kids":[{"kids":[{"name":"a"}]}]}`},
	{"then", `{"properties":{"k":{}},"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"b":{}}}}`,
		`{"b":1,"k":2}`, `{"b":1,"k":1}`},
	{"dependent-schema", `{` + keyA + `,"dependentSchemas":{"a":{"properties":{"b":{}}}}}`, `{"b":1}`, `{"a":1,"b":1}`},
	{"if-names-no-object", `{"properties":{"b":{}},"if":{"properties":{"k":{"properties":{"x":{}}}}}}`, `{"k":{"y":1}}`,
		`{"b":1}`},
	{"not-names-no-key", `{` + keyA + `,"not":{"properties":{"b":{"const":2}},"required":["b"]}}`, `{"b":1}`, `{"a":1}`},
	{"property-names-name-no-key", `{` + keyA + `,"propertyNames":{"enum":["a","b"]}}`, `{"b":1}`, `{"a":1}`},
}
