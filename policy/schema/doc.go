// Package schema validates JSON documents against JSON Schemas from untrusted servers.
//
// A tool's inputSchema and outputSchema come from a server that may be hostile, and so may the
// planner that writes the arguments. [Compile] reads a schema, [Schema.Judge] validates a document.
// Neither reads a file, opens a connection, panics, or takes more time and memory than [Limits]
// allow. The validator is github.com/santhosh-tekuri/jsonschema/v6; this package bounds what
// reaches it, and closes schemas.
//
// # Dialects
//
// $schema may name draft-04, draft-06, draft-07, 2019-09 or 2020-12; without it a schema is
// 2020-12, as MCP says. Everything else is refused. References resolve within the document. format
// is asserted where the dialect asserts it: up to draft-07, and not since 2019-09, where it is an
// annotation. Regular expressions are RE2 (https://github.com/google/re2/wiki/Syntax): lookaround
// is refused. Numbers are exact: 9007199254740993 is not 9007199254740992.
//
// # What is refused before anything is judged
//
// Compile refuses:
//
//   - a schema that is not strict JSON, or exceeds a limit;
//   - subschemas that apply in place of themselves ({"$ref":"#"}, two that refer to one another);
//   - schemas that apply too many subschemas to one value (a chain of n allOf with two references each is 2^n);
//   - references to anything but a subschema of the document, dynamic references ($dynamicRef, $recursiveRef and their anchors),
//     identifiers ($id) below the root, and anchors ($anchor) below the root except those of schemas in its $defs.
//
// If a schema has several errors, Compile always reports the same one.
//
// Recursion through members and items describes trees and is allowed. It may still multiply the
// work at every level, as {"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]} does. So Judge
// counts what a document would cost and refuses one that costs too much, before it evaluates
// anything.
//
// # The closed world
//
// A key that the schema does not name is refused at every depth, unless the schema says whether
// other keys are allowed: by additionalProperties, unevaluatedProperties, or a const or enum for
// the whole value. A key is named by properties or patternProperties, and not by required. The top
// level is always closed: a tool without properties takes no arguments. A nested object without
// named keys stays open, as does a nested array without a description of its items; [Schema.Open]
// lists both. If several subschemas apply to one value (allOf, $ref, if, …), a key that any of them
// evaluates is named, as with unevaluatedProperties. A condition (if) alone does not name a key
// whose value may have keys of its own.
//
// Two subschemas that describe one nested object from different parents are closed separately: with
// properties/a in both branches of an allOf, each branch refuses the keys of the other. Such a
// schema must write additionalProperties. This refuses too much, never too little: a document that
// Judge accepts is valid by the schema as written.
package schema
