// Package schema judges JSON documents by JSON Schemas that nobody has to trust.
//
// A tool's inputSchema and outputSchema come from a server that may be hostile; the arguments come from a planner that
// may be. [Compile] reads a schema, [Schema.Judge] holds a document against it. Neither reads a file, opens a
// connection, panics, or takes more time and memory than [Limits] allow. github.com/santhosh-tekuri/jsonschema/v6
// evaluates; everything around it is here.
//
// # Dialects
//
// $schema may name draft-04, draft-06, draft-07, 2019-09 or 2020-12; without it a schema is 2020-12, as MCP says.
// Everything else is refused, in subschemas too. References resolve within the document, or to the meta-schemas of
// these dialects. format is asserted where the dialect asserts it: up to draft-07, and not since 2019-09, where it is
// an annotation. Regular expressions are RE2 (https://github.com/google/re2/wiki/Syntax): lookaround is refused.
// Numbers are exact: 9007199254740993 is not 9007199254740992.
//
// # What is refused before anything is judged
//
// Compile refuses what is not strict JSON or exceeds a limit; subschemas that stand for themselves in place
// ({"$ref":"#"}, two that refer to one another); those that one value would be held against too often (a chain of n
// allOf with two references each is 2^n subschemas); and $dynamicRef and $recursiveRef whose target depends on the way
// by which they are reached; and identifiers in a place that is a subschema's only because a reference leads there, where
// they could bend other references. Of several things that are wrong, the same one is named every time.
//
// Recursion through members and items describes trees and is allowed. It may still multiply the work at every level, as
// {"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]} does. So Judge counts what a document would cost and refuses one
// that costs too much, before it evaluates anything.
//
// # The closed world
//
// A key that the schema does not name is refused at every depth, unless the schema says in words what becomes of other
// keys: additionalProperties or unevaluatedProperties, or a const or enum for the whole value. A key is named by
// properties or patternProperties; required alone does not name it. The top level is always closed: a tool that names
// no properties takes no arguments. A nested object for which the schema names no key stays open, as does a nested
// array of whose items it says nothing, and [Schema.Open] lists them. Where allOf, $ref, if and their like hold several
// subschemas against one value, what any of them evaluates counts as named, as with unevaluatedProperties; but a key
// whose value may hold keys of its own is not named by a condition (if) alone.
//
// Two subschemas that describe one nested object from different parents do not know of one another: with
// properties/a in both branches of an allOf, each of the two closes a by itself. Such a schema must say
// additionalProperties where it means it. This refuses too much, never too little: what Judge accepts is valid by the
// schema as written.
package schema
