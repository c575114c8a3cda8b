package config

import (
	_ "embed" // the two files
	"fmt"
	"io/fs"
	"slices"
	"strings"
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

// A StarterFile is a file of a new configuration.
type StarterFile struct {
	Name string
	Text []byte
}

// StarterFiles returns the files of a new configuration, its pgfsm.yaml first and its allowlist second: [Starter] and, unless the name is
// empty, a starter bundle, which the configuration then names.
func StarterFiles(bundle string) ([]StarterFile, error) {
	files := []StarterFile{{FileName, Starter()}, {"allowlist.json", StarterAllowlist()}, {"pgfsm.schema.json", Schema("pgfsm")}}
	if bundle == "" {
		return files, nil
	}
	folder, err := Bundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("there is no bundle %q; there are %s", bundle, strings.Join(bundleNames, ", "))
	}
	for _, name := range []string{BundleRisk, BundlePolicy, BundleTests} {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		files = append(files, StarterFile{name, text})
	}
	files[0].Text = append(files[0].Text,
		"\n# How risky a call is, and whether it may run: docs/guide/policies.md. Try them: pgfsm policy test tests.yaml\n"+
			"risk: "+BundleRisk+"\npolicy: "+BundlePolicy+"\n"...)
	return files, nil
}
