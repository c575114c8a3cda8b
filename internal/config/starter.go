package config

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// FileName is the configuration file in [Demo]. The paths in the file are relative to it.
const FileName = "pgfsm.yaml"

// Demo holds the demo configuration, which pgfsm uses if there is no other: pgfsm.yaml, its
// allowlist, and a schema for each tool's results. The demo server declares the same schemas
// (INV-4), so the two cannot differ.
//
//go:embed pgfsm.yaml allowlist.json schemas/*.json
var Demo embed.FS

//go:embed bundles/*/*.yaml bundles/*/*.json
var bundles embed.FS

// CodingAgent is the bundle for the tools of a coding agent. It has an allowlist of its own.
const CodingAgent = "coding-agent"

var bundleNames = []string{"sandbox", "gated-deploys", "contextual-controls", "change-management", "regulated-data",
	CodingAgent}

// Bundles returns the names of the starter bundles, the simplest first:
//
//	sandbox               try things out where nothing can break; leave secrets alone
//	gated-deploys         calls to production wait for an approver
//	contextual-controls   decisions by amount, recipient and requester
//	change-management     changes with tickets, checks, and two people for what matters
//	regulated-data        masked queries; personal data does not leave
//	coding-agent          the tools of a coding agent: it works in its project; the rest waits
func Bundles() []string { return slices.Clone(bundleNames) }

// The commented configuration that pgfsm init writes, with every key in it, and its allowlist: the
// demo servers' tools that only read.
var (
	//go:embed starter.yaml
	starter []byte
	//go:embed starter.json
	starterAllowlist []byte
)

// A StarterFile is a file of a new configuration.
type StarterFile struct {
	Name string
	Text []byte
}

// StarterFiles returns the files of a new configuration, its pgfsm.yaml first and its allowlist
// second. They are valid without changes and connect to the demo servers. Unless the name is empty,
// a starter bundle is added, which the configuration then names. The bundle coding-agent has the
// server of its agent in place of the demo servers.
func StarterFiles(bundle string) ([]StarterFile, error) {
	files := []StarterFile{{FileName, slices.Clone(starter)}, {"allowlist.json", starterAllowlist},
		{"pgfsm.schema.json", Schema("pgfsm")}}
	if bundle == "" {
		return files, nil
	}
	if !slices.Contains(bundleNames, bundle) {
		return nil, fmt.Errorf("there is no bundle %q; there are %s", bundle, strings.Join(bundleNames, ", "))
	}
	for _, name := range []string{"risk.yaml", "policy.yaml", "claims.yaml", "tests.yaml"} {
		text, err := bundles.ReadFile("bundles/" + bundle + "/" + name)
		if err != nil {
			return nil, err
		}
		files = append(files, StarterFile{name, text})
	}

	if bundle == CodingAgent {
		if err := addCodingAgent(files); err != nil {
			return nil, err
		}
	}

	files[0].Text = append(files[0].Text,
		"\n# How risky a call is, and whether it may run: docs/guide/policies.md. Try them: pgfsm policy test tests.yaml\n"+
			"risk: risk.yaml\npolicy: policy.yaml\n\n# What holds for every call: pgfsm policy prove\nclaims: claims.yaml\n"...)
	return files, nil
}

var (
	// The server of a coding agent in the starter, which is switched off there.
	offClaude = regexp.MustCompile(`(?m)^#-(  claude:.*\n)#-(.*\n)#-(.*\n)`)
	// The servers of the demo in the starter, with the comment before them, and the routes to them.
	demoServers = regexp.MustCompile(`(?s)# MCP servers\. These are [^\n]*\n(servers:\n)  mcp-sharepoint:.*?\n(#-  docs:)`)
	demoRoutes  = regexp.MustCompile(`(?m)^  routes:\n(    .*\n)+`)
)

// addCodingAgent puts a coding agent and its tools in place of the demo servers.
func addCodingAgent(files []StarterFile) (err error) {
	text := offClaude.ReplaceAll(files[0].Text, []byte("$1$2$3"))
	text = demoServers.ReplaceAll(text, []byte("# MCP servers, and the coding agent.\n$1$2"))
	files[0].Text = demoRoutes.ReplaceAll(text, nil)
	files[1].Text, err = bundles.ReadFile("bundles/" + CodingAgent + "/allowlist.json")
	return err
}
