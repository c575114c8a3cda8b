package config

import (
	_ "embed" // the two files
	"slices"
)

//go:embed starter.yaml
var starter []byte

//go:embed starter.json
var starterAllowlist []byte

// Starter returns the commented configuration that pgfsm init writes, with every key in it. It is valid as it is, with
// [StarterAllowlist] beside it under the name allowlist.json, and reaches the demo servers.
func Starter() []byte { return slices.Clone(starter) }

// StarterAllowlist returns the allowlist that goes with [Starter]: the demo servers' tools that only read.
func StarterAllowlist() []byte { return slices.Clone(starterAllowlist) }
