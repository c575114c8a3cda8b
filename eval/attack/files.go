package attack

import (
	"fmt"
	"path/filepath"
	"sync"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/policy"
	"pgfsm/states"
)

// A cache makes each value once, also for several goroutines that ask at the same time.
type cache[K comparable, V any] struct {
	mu   sync.Mutex
	made map[K]func() (V, error)
}

func (c *cache[K, V]) get(key K, produce func() (V, error)) (V, error) {
	c.mu.Lock()
	value, ok := c.made[key]
	if !ok {
		if c.made == nil {
			c.made = make(map[K]func() (V, error))
		}
		value = sync.OnceValues(produce)
		c.made[key] = value
	}
	c.mu.Unlock()
	return value()
}

// files reads the files that cases name, and compiles bundles.
type files struct {
	open    config.Open
	tools   cache[string, *eval.Tools]
	configs cache[string, *configFile]
	grants  cache[string, *grant]
	bundles cache[bundleKey, *policy.Bundle]
	listed  cache[listedKey, *states.ToolsListed]
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

// bundle compiles the bundle of an arm. g may be nil.
func (f *files) bundle(arm Arm, c *configFile, g *grant) (*policy.Bundle, error) {
	arm = arm.bundle()
	key := bundleKey{config: c.digest, arm: arm}
	var own *policy.Grant
	if g != nil {
		own = &g.grant
		if arm.granted() {
			key.grant = g.path
		}
	}
	return f.bundles.get(key, func() (*policy.Bundle, error) {
		b, err := policy.Compile(arm.content(c.content, own))
		if err != nil {
			err = fmt.Errorf("%s cannot be compiled for the arm %s: %w", filepath.ToSlash(c.path), arm, err)
		}
		return b, err
	})
}

// listing returns the answers of the bundle's servers to tools/list in an arm. The arm with the allowlist alone has schemas that take
// anything.
func (f *files) listing(arm Arm, c *configFile, t *eval.Tools) (*states.ToolsListed, error) {
	return f.listed.get(listedKey{t.Digest(), c.digest, arm == Allowlist}, func() (*states.ToolsListed, error) {
		return listing(t, c.content.Servers, arm == Allowlist)
	})
}
