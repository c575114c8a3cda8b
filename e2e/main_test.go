// Package e2e has the tests that need processes of pgfsm: signals and kills, reloads, TLS, replicas, proxies, browsers, the programs of others, and
// the journeys of the documentation.
package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

const (
	repository    = ".."
	tokenVariable = "PGFSM_TOKEN"

	exitYes     = clitest.ExitYes
	exitNo      = clitest.ExitNo
	exitCould   = clitest.ExitCould
	exitPending = clitest.ExitPending
)

// TestMain runs the tests with pgfsm in PATH, and with the programs that this test binary is under another name.
func TestMain(m *testing.M) {
	clitest.Private()
	// Most tests in parallel wait for a server's or the gateway's time limits; -parallel changes the number.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(suite{m}, map[string]func(){
		"frugal":       frugal,
		"cramped":      cramped,
		"scribe":       scribe,
		"between":      between,
		"handover":     handOver,
		"confidential": confidential,
	})
}

// suite is the package's tests. The binary that they run is built before them, and the cluster stops after them.
type suite struct{ *testing.M }

func (s suite) Run() int {
	var err error
	dir := os.Getenv(builtIn)
	if dir == "" {
		if dir, err = os.MkdirTemp("", "pgfsm"); err == nil {
			defer os.RemoveAll(dir)
			err = build(dir)
		}
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cluster.Main(s.M)
}

// builtIn names the folder of a pgfsm that was built already.
const builtIn = "PGFSM_TEST_BUILT"

// build builds pgfsm as make test builds tests, so that what is compiled is compiled once.
func build(dir string, more ...string) error {
	args := append([]string{"build", "-o", dir + string(os.PathSeparator), "-ldflags=-s -w"}, more...)
	if raceDetector {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "../cmd/pgfsm")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// command runs pgfsm with nothing else in its environment than where programs and temporary files are.
func command(ctx context.Context, env map[string]string, args ...string) clitest.Result {
	return commandIn(ctx, "", env, args...)
}

func commandIn(ctx context.Context, dir string, env map[string]string, args ...string) clitest.Result {
	cmd := exec.CommandContext(ctx, "pgfsm", args...)
	cmd.Dir = dir
	for _, name := range []string{"PATH", "TMPDIR", "HOME", "SystemRoot"} {
		if v, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for name, v := range env { // the order is of no importance
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return clitest.Result{Code: -1, Stderr: err.Error()}
	}
	return clitest.Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// child prepares a process of pgfsm, or of a program that this test binary is.
func child(ctx context.Context, name string, env []string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

// replays wants every trace of a folder to replay, and this many of them.
func replays(t *testing.T, traces string, n int) {
	t.Helper()
	command(t.Context(), nil, "replay", traces).Expect(t, exitYes, fmt.Sprintf("%d replayed alike, 0 not", n))
}

// files lists everything below a folder, each with its size and mode.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			list = append(list, strings.Join([]string{path, fmt.Sprint(info.Size()), info.Mode().String(), info.ModTime().String()}, " "))
		}
		return err
	})
	check.NoError(t, err)
	return list
}
