// Package config has the demo configuration, which pgfsm uses without another one, the output types of the demo tools, and the starter bundles: risk rules
// and policies to begin with.
//
//	pgfsm.yaml       the configuration, commented; it is also an example to start from
//	allowlist.json   the tools that may be called: the six that only read
//	schemas/*.json   JSON Schema 2020-12, one for each of the six
//	bundles/NAME/    risk.yaml, policy.yaml, and tests.yaml, which says what they must decide; see [Bundles]
//
// Each schema is used twice: pgfsm.yaml registers it as an output type (INV-4), and the demo server declares it as the tool's outputSchema. So the two
// cannot differ.
package config

import (
	"embed"
	"io/fs"
	"slices"
)

// FileName is the file of [Demo] at which reading starts. The paths in it are relative to it.
const FileName = "pgfsm.yaml"

// Demo holds the files that the package comment lists.
//
//go:embed pgfsm.yaml allowlist.json schemas/*.json
var Demo embed.FS

//go:embed bundles/*/*.yaml
var bundles embed.FS

// The files of a starter bundle.
const (
	BundleRisk   = "risk.yaml"
	BundlePolicy = "policy.yaml"
	BundleTests  = "tests.yaml"
)

var bundleNames = []string{"sandbox", "gated-deploys", "contextual-controls", "change-management", "regulated-data"}

// Bundles returns the names of the starter bundles, the simplest first:
//
//	sandbox               try things out where nothing can break; leave secrets alone
//	gated-deploys         calls to production wait for an approver
//	contextual-controls   decisions by amount, recipient and requester
//	change-management     changes with tickets, checks, and two people for what matters
//	regulated-data        masked queries; personal data does not leave
func Bundles() []string { return slices.Clone(bundleNames) }

// Bundle returns the folder of a starter bundle, which holds the files [BundleRisk], [BundlePolicy] and [BundleTests].
// The error is [fs.ErrNotExist] if there is none of this name.
func Bundle(name string) (fs.FS, error) {
	if !slices.Contains(bundleNames, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return fs.Sub(bundles, "bundles/"+name)
}
