package eval

import (
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
