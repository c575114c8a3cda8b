package eval

import (
	"errors"
	"os"
	"path/filepath"

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

// ReadFile reads a regular file: opening a pipe would block, and reading a device would not end.
// The error is a [*Fault].
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &Fault{File: filepath.ToSlash(path), Problem: "it cannot be read: " + err.Error()}
	}
	return text, nil
}
