// Package config reads the configuration file, pgfsm.yaml, and the files it names.
//
// # One definition
//
// Every key is one row of a table (keys.go): its type, bounds, default, meaning. The parser, the nearest-key hint, the
// published JSON Schema ([Schema]) and the table in docs/reference/configuration.md are all made from those rows.
//
// # Strict YAML
//
// [Parse] reads less than YAML offers, so that a file means to every reader what it means to us: one document, one
// spelling of each number, true and false, and no anchors, aliases, merge keys, tags, directives or "?" keys. A key
// that the table does not name, a key that stands twice and a value of another type are errors. A byte order mark,
// control characters, more than [MaxFileBytes] or more than [MaxDepth] levels are refused before anything is parsed.
//
// # Errors
//
// All faults of a file come at once, as [Errors]: each with file, line, column, the source line with a caret, and what
// to do about it. Values that stand where secrets stand are starred out in what is shown.
//
// # Files that the configuration names
//
// [Load] also reads the allowlist, grants, risk rules, policies, output types and a client's file of servers, through a
// function that the caller gives it: this package opens nothing itself. A relative path counts from the folder of the
// file it stands in; it may lead out of that folder, for the operator who wrote it may read what it names. The caller's
// function is the place for [Insecure], which says whether others could have written a file.
//
// # Risk rules and policies
//
// [ReadRisk] and [ReadPolicy] read them as strictly, up to [MaxPolicyFileBytes], and hold them to what packages risk
// and rules say of them. A fault in an expression is shown under the character at which it is, however the expression
// is written in the file; [Places] finds any entry again.
//
// # The gateway
//
// [Serve] is what pgfsm serve is told: where it listens, what it tells agents, how held calls wait, and what may pass
// between agents and each server. It stands beside what calls are judged by, not in it: no digest of a bundle covers it.
//
// # Secrets
//
// Values of headers, env and api_key, and nothing else, may hold references: ${env:NAME} stands for an environment
// variable, ${file:PATH} for a file's content without its last line end, and $${ for the two characters ${. [Loaded]
// never holds what they stand for; [Loaded.Resolve] asks for it when servers are about to be connected.
//
// # A client's file
//
// The mcp_servers file is a client's own and runs commands, so no entry of it is used unless the configuration lists
// it by name and by [EntryDigest]. [ReadClient] and [Imported] are how such a list is made. No line of that file is
// ever shown: secrets may stand anywhere in it.
package config
