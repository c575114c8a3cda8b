// Package config reads the configuration file, pgfsm.yaml, and the files it names.
//
// # Schemas
//
// The table of keys is a JSON Schema beside the code: one for each kind of file ([Schema]). A file
// is read into nodes with places, judged by its schema, completed with the schema's defaults and
// decoded into a struct; then cross checks compare its parts. The tables in docs/reference are made
// from the schemas.
//
// # Strict YAML
//
// The reader accepts a subset of YAML, so that every reader of a file understands it in the same
// way: one document, one spelling of each number, true and false, and no anchors, aliases, merge
// keys, tags, directives or "?" keys. Unknown keys, duplicate keys and values of another type are
// errors. It refuses a byte order mark, control characters, more than [MaxFileBytes] and more than
// [MaxDepth] levels.
//
// # Errors
//
// All faults of a file are reported together, as [Errors]: each with file, line, column and a
// remedy, and with the source line and a caret unless the file may contain secrets, as pgfsm.yaml
// may. Cross checks follow when the schema finds no fault.
//
// # Files that the configuration names
//
// [Load] also reads the allowlist, grants, risk rules, policies and output types, through a
// function that the caller passes: this package opens no file. A relative path is relative to the
// folder of the file that contains it; it may lead out of that folder. [Places] finds the place of
// an entry of risk rules or policies, and a fault in an expression is reported at its character.
//
// # The gateway
//
// [Serve] has the settings of pgfsm serve: its addresses, what refusals tell agents, how held calls
// wait, and which messages it relays. They do not judge calls, so no digest of a bundle covers
// them.
//
// # Secrets
//
// Only values that the schema marks with writeOnly may contain references: ${env:NAME} is an
// environment variable, ${file:PATH} a file's content without its last line end, and $${ the two
// characters ${. [Loaded] never contains the secrets themselves; [Loaded.Resolve] reads them right
// before pgfsm connects to servers.
//
// # A client's file
//
// A client's file of servers starts commands. [ReadClient] checks its entries, and [Imported]
// copies the usable ones into a configuration. No error quotes a line of that file, because any
// line may contain a secret.
package config
