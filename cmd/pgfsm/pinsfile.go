package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"pgfsm/config"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

// allowlistFile is the allowlist as it was read, with the pins that stand in it.
type allowlistFile struct {
	path  string // of the file itself, behind every symbolic link
	text  []byte
	tools []policy.Allowance
	pins  []policy.Pin
}

// readAllowlist reads the allowlist file that the configuration, or SAFE_ALLOWLIST_PATH, names.
func readAllowlist(w world, o *options) (*allowlistFile, error) {
	loaded, from, err := load(w, o)
	if err != nil {
		return nil, err
	}
	if from == embeddedDemo && w.env("SAFE_ALLOWLIST_PATH") == "" {
		return nil, fmt.Errorf("%s has no allowlist file to hold pins: pgfsm init writes a configuration that has one", from)
	}
	path, err := filepath.EvalSymlinks(loaded.AllowlistPath)
	if err != nil {
		return nil, err
	}
	f := &allowlistFile{path: path}
	if f.text, err = ours(path); err != nil {
		return nil, err
	}
	f.tools, f.pins, err = config.ReadPins(path, f.text)
	return f, err
}

// pinOf returns the pin of a tool, or nothing.
func pinOf(pins []policy.Pin, server, tool string) canonical.Digest {
	for _, p := range pins {
		if p.Server == server && p.Tool == tool {
			return p.Definition
		}
	}
	return ""
}

// scope are the allowlisted tools that the words name: all, those of a server, or one.
func (f *allowlistFile) scope(words []string) ([]pinRow, error) {
	var rows []pinRow
	known := len(words) == 0
	for _, server := range f.tools {
		if len(words) > 0 && server.Server != words[0] {
			continue
		}
		known = known || len(words) == 1
		for _, tool := range server.Tools {
			if len(words) == 2 && tool != words[1] {
				continue
			}
			known = true
			rows = append(rows, pinRow{Server: server.Server, Tool: tool, Pin: pinOf(f.pins, server.Server, tool)})
		}
	}
	if !known {
		return nil, fmt.Errorf("%s is not on the allowlist, %s: nothing else can be pinned", strings.Join(words, " "), f.path)
	}
	return rows, nil
}

// definitions are tool definitions in canonical form, each under its digest.
type definitions map[canonical.Digest]jsontext.Value

// definitionKind is the kind of thing that package policy takes a definition's digest as.
const definitionKind = "tool definition"

// beside is the file that keeps the definitions that pins stand for.
func (f *allowlistFile) beside() string { return strings.TrimSuffix(f.path, ".json") + ".pins.json" }

// kept reads the definitions that were kept, and the text they stand in; nil where there is no such file. One that has
// not the digest it stands under is not what was approved and is left out; unsure then says so.
func (f *allowlistFile) kept() (known definitions, text []byte, unsure string, err error) {
	known = make(definitions)
	text, err = ours(f.beside())
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil, "", nil
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("%s: %w", f.beside(), err)
	}
	var members map[string]jsontext.Value
	if err := canonical.Check(text, 0); err != nil {
		return known, text, fmt.Sprintf("%s is %s", f.beside(), err), nil
	}
	if err := json.Unmarshal(text, &members); err != nil {
		return known, text, f.beside() + " is not an object of definitions", nil
	}
	wrong := 0
	for name, v := range members {
		definition, err := canonical.JSON(v)
		if d := canonical.Digest(name); err == nil && canonical.Sum(definitionKind, definition) == d {
			known[d] = definition
		} else {
			wrong++
		}
	}
	if wrong > 0 {
		unsure = fmt.Sprintf("%s: %d of %d definitions do not have the digests that they stand under",
			f.beside(), wrong, len(members))
	}
	return known, text, unsure, nil
}

// save writes the pins, and before them the definitions they stand for: of the known and the fresh ones those that the
// old or the new pins name. What is the same already is not written.
func (f *allowlistFile) save(pins []policy.Pin, known, fresh definitions, was []byte) error {
	keep := make(definitions)
	for _, p := range slices.Concat(f.pins, pins) {
		for _, from := range []definitions{known, fresh} {
			if v := from[p.Definition]; v != nil {
				keep[p.Definition] = v
			}
		}
	}
	kept := maps.EqualFunc(keep, known, func(a, b jsontext.Value) bool { return bytes.Equal(a, b) })
	if kept && slices.Equal(pins, f.pins) {
		return nil
	}
	return f.locked(func() error {
		if !kept {
			doc, err := json.Marshal(keep, json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				return err
			}
			if err := f.replace(f.beside(), was, []byte(asciiControls(doc)+"\n")); err != nil {
				return err
			}
		}
		return f.savePins(pins)
	})
}

// savePins writes the pins alone, under the lock.
func (f *allowlistFile) savePins(pins []policy.Pin) error {
	if slices.Equal(pins, f.pins) {
		return nil
	}
	text, err := config.EditPins(f.text, pins)
	if err != nil {
		return err
	}
	return f.replace(f.path, f.text, text)
}

// locked does something while no other pgfsm writes pins. The lock is of the file that was read, which whoever writes
// puts another into the place of: a second one that gets the lock then finds that file changed.
func (f *allowlistFile) locked(do func() error) error {
	lock := flock.New(f.path, flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLock(); err != nil {
		return err
	} else if !ok {
		return fmt.Errorf("%s is being written by another pgfsm; nothing was written: run the command again", f.path)
	}
	return errors.Join(do(), lock.Unlock())
}

// replace puts a text into the place of the one that was read, in one step and under the same mode; nil was no file.
func (f *allowlistFile) replace(path string, was, text []byte) error {
	if len(text) > maxConfigBytes {
		return fmt.Errorf("%s would have %d bytes; at most %d are read", path, len(text), maxConfigBytes)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	like, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(like.Mode().Perm()), renameio.WithExistingPermissions())
	if err != nil {
		return stays(path, err)
	}
	_, err = pending.Write(text)
	if err == nil {
		err = errors.Join(unchanged(f.path, f.text), unchanged(path, was))
	}
	if err == nil {
		err = pending.CloseAtomicallyReplace()
	}
	if err != nil {
		return stays(path, errors.Join(err, pending.Cleanup()))
	}
	return nil
}

func stays(path string, err error) error { return fmt.Errorf("%s stays as it is: %w", path, err) }

// unchanged says that a file is no longer what was read; nil was no file.
func unchanged(path string, was []byte) error {
	now, err := ours(path)
	if gone := errors.Is(err, fs.ErrNotExist); err != nil && !(gone && was == nil) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !bytes.Equal(now, was) {
		return fmt.Errorf("%s is no longer what was read: run the command again", path)
	}
	return nil
}
