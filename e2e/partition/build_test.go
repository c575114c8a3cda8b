//go:build linux

package partition_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
)

// repository is the root of the module, as seen from this package.
const repository = "../.."

// clockVariable says by how much the clock of a process that [build] made is wrong.
const clockVariable = "PGFSM_PARTITION_CLOCK"

// skewed is a file of each package that reads the clock. The wall clock of the time is moved and its monotonic reading is not, as on a machine whose
// clock is wrong: durations stay right.
const skewed = `package %s

import (
	"os"
	"time"
	"unsafe"
)

var skewedBy = func() int64 {
	d, err := time.ParseDuration(os.Getenv("` + clockVariable + `"))
	if err != nil {
		panic(err)
	}
	return int64(d / time.Second)
}()

func skewedNow() time.Time {
	t := time.Now()
	*(*uint64)(unsafe.Pointer(&t)) += uint64(skewedBy << 30) // the seconds of the wall clock, in a time with a monotonic reading
	return t
}
`

var readsClock = regexp.MustCompile(`\btime\.Now\b`)

// build builds pgfsm with a clock that is wrong by what clockVariable says. The compiler gets other sources than the module's: see the flag
// -overlay of go build.
func build(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	replace := make(map[string]string)
	add := func(path, text string) {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		check.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		replace[path] = file
	}
	root, err := filepath.Abs(repository)
	check.NoError(t, err)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return cmp.Or[error](err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !readsClock.Match(text) {
			return err
		}
		add(path, string(readsClock.ReplaceAll(text, []byte("skewedNow")))+"\nvar _ time.Time\n")
		if beside := filepath.Join(filepath.Dir(path), "skewed_now.go"); replace[beside] == "" {
			add(beside, fmt.Sprintf(skewed, packageName(text)))
		}
		return nil
	})
	check.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	check.NoError(t, err)
	list, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "pgfsm")
	check.NoError(t, os.WriteFile(list, overlay, 0o600))
	cmd := exec.Command("go", "build", "-overlay", list, "-o", path, "./cmd/pgfsm")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// packageName reads the name of a file's package.
func packageName(text []byte) string {
	for line := range bytes.Lines(text) {
		if name, ok := bytes.CutPrefix(line, []byte("package ")); ok {
			return string(bytes.TrimSpace(name))
		}
	}
	return ""
}
