package eval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/safefile"
)

// WriteFile writes a file in one step, and makes its folder if there is none.
func WriteFile(path string, doc []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return safefile.Write(path, doc, 0o644)
}

// WriteResult writes the result of an evaluation to a file, as indented JSON.
func WriteResult(path string, result any) error {
	doc, err := json.Marshal(result, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("the result cannot be written: %w", err)
	}
	if err := WriteFile(path, append(doc, '\n')); err != nil {
		return fmt.Errorf("the result could not be written to %s: %w", path, err)
	}
	return nil
}

// ReadFile reads a regular file: opening a pipe would block, and reading a device would not end.
// The error is a [*Fault].
func ReadFile(path string) ([]byte, error) {
	unreadable := func(err error) error {
		return &Fault{File: filepath.ToSlash(path), Problem: "it cannot be read: " + err.Error()}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, unreadable(errors.New("it is not a regular file"))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return text, nil
}
