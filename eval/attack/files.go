package attack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"pgfsm/config"
	"pgfsm/eval"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// Bounds of what is kept of the files that cases name. What is forgotten is read and compiled again: many files cost time.
const (
	maxKept     = 128 // compiled bundles, and listings
	maxBundles  = 256 // configurations
	maxGrants   = 10_000
	maxToolsets = 64
)

// files reads what cases name, each file once, and compiles it, each bundle once. It is safe for concurrent use.
type files struct {
	open config.Open

	mu      sync.Mutex
	tools   map[string]*eval.Tools
	configs map[string]*configFile
	grants  map[string]*grant
	bundles map[bundleKey]*compiled
	listed  map[listedKey]*listedTools
}

// configFile is a pgfsm.yaml with all that it names.
type configFile struct {
	path    string
	content policy.Content
	digest  canonical.Digest // of the content
}

// grant is a grant file.
type grant struct {
	path   string
	grant  policy.Grant
	digest canonical.Digest
}

type bundleKey struct {
	config, grant string
	arm           Arm
}

type compiled struct {
	once   sync.Once
	bundle *policy.Bundle
	err    error
}

type listedKey struct {
	tools  canonical.Digest
	config string
	opened bool
}

type listedTools struct {
	once   sync.Once
	listed *states.ToolsListed
	err    error
}

func newFiles(open config.Open) *files {
	return &files{
		open: open, tools: make(map[string]*eval.Tools), configs: make(map[string]*configFile), grants: make(map[string]*grant),
		bundles: make(map[bundleKey]*compiled), listed: make(map[listedKey]*listedTools),
	}
}

// remembered is the value of a key, made if it is not there. The caller holds the lock. A map that is full is begun anew.
func remembered[K comparable, V any](in map[K]V, key K, most int, make func() (V, error)) (V, error) {
	if v, ok := in[key]; ok {
		return v, nil
	}
	v, err := make()
	if err != nil {
		return v, err
	}
	if len(in) >= most {
		clear(in) // who holds one of them has it
	}
	in[key] = v
	return v, nil
}

// toolsAt reads a tools file.
func (f *files) toolsAt(path string) (*eval.Tools, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return remembered(f.tools, path, maxToolsets, func() (*eval.Tools, error) {
		text, err := readBounded(path, eval.MaxToolsBytes)
		if err != nil {
			return nil, err
		}
		return eval.ReadTools(filepath.ToSlash(path), text)
	})
}

// configAt reads a configuration.
func (f *files) configAt(path string) (*configFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return remembered(f.configs, path, maxBundles, func() (*configFile, error) {
		loaded, err := config.Load(path, f.open, config.Overrides{})
		if err != nil {
			return nil, err
		}
		digest, err := canonical.SumOf("evaluation bundle", &loaded.Content)
		return &configFile{path, loaded.Content, digest}, err
	})
}

// grantAt reads a grant file.
func (f *files) grantAt(path string) (*grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return remembered(f.grants, path, maxGrants, func() (*grant, error) {
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

// bundle compiles what an arm judges by. Whoever needs it first compiles it; the others wait for it and for nothing else.
func (f *files) bundle(arm Arm, c *configFile, g *grant) (*policy.Bundle, error) {
	arm = arm.bundle()
	key := bundleKey{config: c.path, arm: arm}
	if g != nil && arm.granted() {
		key.grant = g.path
	}
	f.mu.Lock()
	made, _ := remembered(f.bundles, key, maxKept, func() (*compiled, error) { return new(compiled), nil })
	f.mu.Unlock()
	made.once.Do(func() {
		var narrowed *policy.Grant
		if g != nil {
			narrowed = &g.grant
		}
		if made.bundle, made.err = policy.Compile(arm.content(c.content, narrowed)); made.err != nil {
			made.err = fmt.Errorf("%s cannot be compiled for the arm %s: %w", filepath.ToSlash(c.path), arm, made.err)
		}
	})
	return made.bundle, made.err
}

// listing is what the bundle's servers answer in an arm.
func (f *files) listing(arm Arm, c *configFile, t *eval.Tools) (*states.ToolsListed, error) {
	key := listedKey{t.Digest(), c.path, arm.opened()}
	f.mu.Lock()
	made, _ := remembered(f.listed, key, maxKept, func() (*listedTools, error) { return new(listedTools), nil })
	f.mu.Unlock()
	made.once.Do(func() { made.listed, made.err = listing(t, c.content.Servers, arm.opened()) })
	return made.listed, made.err
}

// readBounded reads a regular file of at most so many bytes.
func readBounded(path string, most int) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err != nil {
		return nil, &eval.Fault{File: filepath.ToSlash(path), Problem: "it cannot be read: " + err.Error()}
	}
	return text, nil
}

// openRegular opens a file that is one: a pipe would be waited for, and a device read, for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, &eval.Fault{File: filepath.ToSlash(path), Problem: "it cannot be read: " + err.Error()}
	}
	return os.Open(path)
}
