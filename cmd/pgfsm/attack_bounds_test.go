package main

import (
	"fmt"
	"strings"

	"pgfsm/policy"
)

// nest is a value some levels deep.
func nest(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func anyOf(value string) string { return `{"any":` + value + `,"path":"a"}` }

// plainOf is the plain plan with white space behind it up to a size.
func plainOf(size int) string { return plain.says + strings.Repeat(" ", size-len(plain.says)) }

// filled is a call whose text makes the plan exactly as large as asked.
func filled(size int) string {
	return pathArgs(strings.Repeat("a", size-len(callOf("look", pathArgs("")))))
}

// keys are members of an object, as many as asked.
func manyKeys(prefix string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%s%05d":1`, prefix, i)
	}
	return strings.Join(list, ",")
}

// treeSchema is satisfied by lists of lists, at twice the work for each level.
const treeSchema = `{"type":"object","properties":{"t":{"$ref":"#/$defs/n"}},
  "$defs":{"n":{"allOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}}}`

// boundAttacks are about how much a plan may be.
func boundAttacks() []attackClass {
	const (
		large = policy.DefaultPlanBytes
		inArg = policy.DefaultJSONDepth - 2 // levels left inside of an argument
	)
	deepest, fullest := callsLook(anyOf(nest(inArg))), filled(large)
	tooLarge := policy.CodePlanTooLarge
	tree := func(levels int) string { return `{"t":` + nest(levels) + `}` }
	return []attackClass{
		{"bombs", func() string { return listing(toolDef("look", lookSchema), toolDef("tree", treeSchema)) }, []attack{
			{"depth-one-past-the-limit", callOf("look", anyOf(nest(inArg+1))), notStrict, deepest},
			{"depth-of-objects-one-past-the-limit",
				callOf("look", anyOf(strings.Repeat(`{"a":`, inArg+1)+"1"+strings.Repeat("}", inArg+1))), notStrict,
				callsLook(anyOf(strings.Repeat(`{"a":`, inArg) + "1" + strings.Repeat("}", inArg)))},
			{"depth-far-past-the-limit", callOf("look", anyOf(nest(20_000))), notStrict, deepest},
			{"depth-that-never-closes", strings.Repeat("[", large-1), notStrict, deepest},
			{"depth-of-objects-that-never-closes", strings.Repeat(`{"a":`, large/6), notStrict, deepest},
			{"depth-in-the-tool", strings.Replace(plain.says, `"look"`, nest(1000), 1), notStrict, plain},
			{"depth-in-an-unknown-member", plainWith(`"tool"`, `"x":`+nest(100)+`,"tool"`), notStrict, plain},
			{"brackets-behind-the-plan", plain.says + strings.Repeat("]", 1000), notStrict,
				callsLook(pathArgs(strings.Repeat("[", 1000)))},
			{"size-one-past-the-limit", plainOf(large + 1), tooLarge, looks(plainOf(large), plain.args)},
			{"text-one-past-the-limit", callOf("look", filled(large+1)), tooLarge, twin{callOf("look", fullest), "files",
				"look", fullest}},
			{"white-space", strings.Repeat(" ", large+1), tooLarge, plain},
			{"one-megabyte", callOf("look", filled(1<<20)), tooLarge, plain},
			{"three-megabytes-of-escapes", callOf("look", pathArgs(strings.Repeat(`\u0041`, 500_000))), tooLarge, plain},
			{"ten-megabytes", callOf("look", filled(10<<20)), policy.CodePlannerFailed, plain},
			{"five-thousand-unknown-arguments", callOf("look", `{`+manyKeys("k", 5000)+`,"path":"a"}`), badArgs,
				callsLook(anyOf(`{` + manyKeys("k", 5000) + `}`))},
			{"five-thousand-unknown-members", `{` + manyKeys("k", 5000) + `,` + plain.says[1:], notAPlan, plain},
			{"five-thousand-wrong-items", deepArgs(strings.Repeat("0,", 5000) + "0"), badArgs,
				deepLook(strings.Repeat("{},", 5000) + "{}")},
			{"ten-thousand-plans", strings.Repeat("{}", 10_000), notStrict, plain},
			{"answer-of-sixty-kilobytes", questionOf(strings.Repeat("a", 60_000)), noAnswer, which},
			{"name-of-sixty-kilobytes", plainWith(`"tool"`, `"`+strings.Repeat("a", 60_000)+`":1,"tool"`), notAPlan, plain},
			{"arguments-that-cost-too-much", callOf("tree", tree(40)), "arguments_too_complex", callsTool("tree", tree(5))},
		}},
	}
}
