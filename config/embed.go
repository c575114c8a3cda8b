// Package config holds the demo configuration that is used when there is no other, and the types of what the demo
// tools return.
//
//	pgfsm.yaml       the configuration, commented; it is also an example to start from
//	allowlist.json   the tools that may be called: the six that only read
//	schemas/*.json   JSON Schema 2020-12, one for each of the six
//
// A schema stands here once and is used twice: pgfsm.yaml registers it as an output type (INV-4) and the demo server
// declares it as the tool's outputSchema. So the two cannot drift apart.
package config

import "embed"

// Name is the file of [FS] at which reading starts. The paths in it are relative to it.
const Name = "pgfsm.yaml"

// FS holds the files that the package comment lists.
//
//go:embed pgfsm.yaml allowlist.json schemas/*.json
var FS embed.FS
