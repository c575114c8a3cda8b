// Package config reads the configuration file, pgfsm.yaml, and the files it names.
//
// # One definition
//
// Every key is one row of a table (keys.go): its type, bounds, default, meaning. The parser, the nearest-key hint, the
// published JSON Schema ([Schema]) and the table in docs/reference/configuration.md are all made from those rows.
//
// # Strict YAML
//
// [Parse] accepts a subset of YAML, so that every reader of a file understands it in the same way: one document, one spelling of each number, true and
// false, and no anchors, aliases, merge keys, tags, directives or "?" keys. Unknown keys, duplicate keys and values of another type are errors. Parse
// refuses a byte order mark, control characters, more than [MaxFileBytes] and more than [MaxDepth] levels before it parses anything.
//
// # Errors
//
// Parse reports all faults of a file together, as [Errors]: each with file, line, column, the source line with a caret, and a remedy. It masks the values
// of keys that may contain secrets.
//
// # Files that the configuration names
//
// [Load] also reads the allowlist, grants, risk rules, policies, output types and a client's file of servers, through a function that the caller passes:
// this package opens no file. A relative path is relative to the folder of the file that contains it; it may lead out of that folder. The caller's function
// should use [Insecure], which reports whether other users may write a file.
//
// # Risk rules and policies
//
// [ReadRisk] and [ReadPolicy] read these files as strictly, up to [MaxPolicyFileBytes], and check them with packages risk and rules. A fault in an
// expression is reported at its character in the file; [Places] finds the place of an entry.
//
// # The gateway
//
// [Serve] has the settings of pgfsm serve: its addresses, what refusals tell agents, how held calls wait, and which messages it relays. They do not judge
// calls, so no digest of a bundle covers them.
//
// # Secrets
//
// Only values of headers, env, api_key, client_secret, private_key, a hook's secret and the URL of a ledger in PostgreSQL may contain references:
// ${env:NAME} is an environment variable, ${file:PATH} a file's content without its last line end, and $${ the two characters ${. [Loaded] never
// contains the secrets themselves; [Loaded.Resolve] reads them right before pgfsm connects to servers.
//
// # A client's file
//
// The mcp_servers file belongs to a client and starts commands, so Load uses an entry only if the configuration lists it by name and by [EntryDigest].
// [ReadClient] and [Imported] make such a list. No error quotes a line of that file, because any line may contain a secret.
package config
