package attack

import (
	"fmt"
	"path/filepath"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
	"pgfsm/states"
)

// A memo keeps values that were made.
type memo[K comparable, V any] map[K]V

// get returns the value of a key, and makes it if there is none.
func (m memo[K, V]) get(key K, produce func() (V, error)) (V, error) {
	if value, ok := m[key]; ok {
		return value, nil
	}
	value, err := produce()
	if err != nil {
		return value, err
	}
	m[key] = value
	return value, nil
}

// files reads the files that cases name, and compiles bundles.
type files struct {
	open    config.Open
	tools   memo[string, *eval.Tools]
	configs memo[string, *configFile]
	grants  memo[string, *grant]
	bundles memo[bundleKey, *policy.Bundle]
	listed  memo[listedKey, *states.ToolsListed]
}

func newFiles(open config.Open) files {
	return files{
		open:    open,
		tools:   make(memo[string, *eval.Tools]),
		configs: make(memo[string, *configFile]),
		grants:  make(memo[string, *grant]),
		bundles: make(memo[bundleKey, *policy.Bundle]),
		listed:  make(memo[listedKey, *states.ToolsListed]),
	}
}

// A configFile is a pgfsm.yaml with the files that it names.
type configFile struct {
	path    string
	content policy.Content
	digest  canonical.Digest // the digest of the content
}

// A grant is a grant file.
type grant struct {
	path   string
	grant  policy.Grant
	digest canonical.Digest
}

type bundleKey struct {
	config canonical.Digest
	grant  string
	arm    Arm
}

type listedKey struct {
	tools, config canonical.Digest
	opened        bool
}

func (f *files) toolsAt(path string) (*eval.Tools, error) {
	return f.tools.get(path, func() (*eval.Tools, error) {
		text, err := eval.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return eval.ReadTools(filepath.ToSlash(path), text)
	})
}

func (f *files) configAt(path string) (*configFile, error) {
	return f.configs.get(path, func() (*configFile, error) {
		loaded, err := config.Load(path, f.open, config.Overrides{})
		if err != nil {
			return nil, err
		}
		return newConfig(path, &loaded.Content)
	})
}

func newConfig(path string, content *policy.Content) (*configFile, error) {
	digest, err := canonical.SumOf("evaluation bundle", content)
	return &configFile{path, *content, digest}, err
}

func (f *files) grantAt(path string) (*grant, error) {
	return f.grants.get(path, func() (*grant, error) {
		text, err := f.open(path)
		if err != nil {
			return nil, fmt.Errorf("the grant %s cannot be read: %w", filepath.ToSlash(path), err)
		}
		g := &grant{path: path}
		if g.grant, err = config.ReadGrant(path, text); err != nil {
			return nil, err
		}
		g.digest, err = canonical.SumOf("evaluation grant", &g.grant)
		return g, err
	})
}

// A setting is what the machine meets in one arm: the compiled bundle, and the answers of its
// servers to tools/list.
type setting struct {
	bundle *policy.Bundle
	listed *states.ToolsListed
}

// settingOf makes the setting of an arm. g may be nil. In the arm with the allowlist alone, schemas
// accept anything.
func (f *files) settingOf(arm Arm, c *configFile, g *grant, t *eval.Tools) (s setting, err error) {
	key := bundleKey{config: c.digest, arm: arm.bundleArm()}
	var caseGrant *policy.Grant
	if g != nil && arm.hasGrants() {
		key.grant, caseGrant = g.path, &g.grant
	}
	s.bundle, err = f.bundles.get(key, func() (*policy.Bundle, error) {
		b, err := policy.Compile(key.arm.contentOf(c.content, caseGrant))
		if err != nil {
			err = fmt.Errorf("%s cannot be compiled for the arm %s: %w", filepath.ToSlash(c.path), key.arm, err)
		}
		return b, err
	})
	if err != nil {
		return s, err
	}
	open := arm == Allowlist
	s.listed, err = f.listed.get(listedKey{t.Digest(), c.digest, open}, func() (*states.ToolsListed, error) {
		return listTools(t, c.content.Servers, open)
	})
	return s, err
}
