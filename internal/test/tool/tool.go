// Package tool finds the programs that some tests need and that not every machine has.
package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/internal/test/check"
)

// pathOnly is the variable that has tests find programs in PATH only, so that .ci/without-tools can take them away.
const pathOnly = "PGFSM_PATH_ONLY"

// places lists the folders where Debian installs programs that a user's PATH lacks.
var places = []string{"/usr/sbin", "/usr/lib/postgresql/*/bin"}

// Path returns the path of the first of the programs that is installed. Without any, the test is skipped; if CI is set, it fails.
// pkg is Debian's package that has the program.
func Path(t testing.TB, pkg string, programs ...string) string {
	t.Helper()
	t.Logf("this test needs %s", programs[0]) // internal/test/report reads it
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
		if path := elsewhere(program); path != "" {
			return path
		}
	}
	missing(t, programs[0], "install "+pkg)
	return ""
}

// elsewhere returns the path of a program that is not in PATH, of its highest version.
func elsewhere(program string) string {
	if os.Getenv(pathOnly) != "" {
		return ""
	}
	for _, place := range places {
		found, _ := filepath.Glob(filepath.Join(place, program)) // it fails only if the pattern is malformed
		if len(found) > 0 {
			return slices.Max(found)
		}
	}
	return ""
}

// Modules returns the folder in which make interop-tools installs what others wrote. Without it, the test is skipped; if CI is set, it fails.
// root is the path of the module's folder.
func Modules(t testing.TB, root string) string {
	t.Helper()
	t.Log("this test needs interop-tools")
	folder, err := filepath.Abs(filepath.Join(root, "interop", "node_modules"))
	check.NoError(t, err)
	_, err = os.Stat(filepath.Join(folder, ".package-lock.json"))
	if err == nil && os.Getenv(pathOnly) != "" { // npm must be installed, too
		_, err = exec.LookPath("npm")
	}
	if err != nil {
		missing(t, "interop-tools", "run make interop-tools")
	}
	return folder
}

// missing skips a test because the machine lacks a program, but never in CI: there a check that is not made is a check that failed.
func missing(t testing.TB, name, remedy string) {
	t.Helper()
	Skip(t, name+" is missing: "+remedy) // internal/test/report reads it
}

// Skip skips a test that the machine cannot run; if CI is set, it fails.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
