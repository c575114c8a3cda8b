package main_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The packages that these tests look at, and the root folder of a Debian system, made by debian-root. make packages sets both.
var dist, debian = os.Getenv("PGFSM_DIST"), os.Getenv("PGFSM_DEBIAN")

// wanted skips a test that make packages has not prepared.
func wanted(t *testing.T) {
	t.Helper()
	if dist == "" || debian == "" {
		t.Skip("run make packages")
	}
	if os.Getuid() != 0 {
		t.Fatal("chroot needs the rights of root")
	}
}

// product returns the one package whose name matches.
func product(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s = %v, %v, want one file", pattern, found, err)
	}
	return found[0]
}

// output runs a program and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A jail is a root folder whose programs run by chroot, as a user without rights.
type jail struct {
	root     string
	uid, gid int
}

func (j jail) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/var/lib/pgfsm"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/pgfsm"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: j.root, Credential: &syscall.Credential{Uid: uint32(j.uid), Gid: uint32(j.gid)}}
	return cmd
}

// prints runs a program in the jail and wants words in what it prints.
func (j jail) prints(t *testing.T, words string, name string, args ...string) {
	t.Helper()
	out, err := j.command(t.Context(), name, args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), words) {
		t.Fatalf("%s %s: %v, want %q\n%s", name, strings.Join(args, " "), err, words, out)
	}
}

// runs runs the program as the README does, and serves with the configuration of the package.
func (j jail) runs(t *testing.T) {
	t.Helper()
	j.prints(t, "revision "+strings.TrimSpace(output(t, "git", "rev-parse", "HEAD")), "/usr/bin/pgfsm", "version")
	j.prints(t, "Security logs are kept for 400 days", "/usr/bin/pgfsm", "run", "Summarize policy policy-002")
	j.prints(t, "0 allowed tools", "/usr/bin/pgfsm", "config", "check", "-c", "/etc/pgfsm/pgfsm.yaml")
	j.serves(t)
}

// serves starts the gateway with the configuration of the package and asks whether it is healthy.
func (j jail) serves(t *testing.T) {
	t.Helper()
	cmd := j.command(t.Context(), "/usr/bin/pgfsm", "serve", "-c", "/etc/pgfsm/pgfsm.yaml", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	admin := ""
	for lines := bufio.NewScanner(out); admin == "" && lines.Scan(); {
		admin, _ = strings.CutPrefix(lines.Text(), "admin ")
		if !strings.HasPrefix(lines.Text(), "admin ") {
			admin = ""
		}
	}
	status := 0
	if answer, err := http.Get(admin + "/healthz"); err == nil {
		answer.Body.Close()
		status = answer.StatusCode
	}
	err = errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	if status != http.StatusOK || err != nil {
		t.Fatalf("/healthz answers %d, and serve ends with %v, want 200 and nothing\n%s", status, err, &said)
	}
	info, err := os.Stat(filepath.Join(j.root, "var/lib/pgfsm/pgfsm.db"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); int(owner.Uid) != j.uid || info.Mode().Perm() != 0o600 {
		t.Errorf("the ledger belongs to user %d with mode %o, want %d and 600", owner.Uid, info.Mode().Perm(), j.uid)
	}
}

// entriesOf reads the entries of a tar file.
func entriesOf(t *testing.T, from io.Reader) (all []*tar.Header) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
}

// archived reads the entries of a compressed tar file.
func archived(t *testing.T, name string) []*tar.Header {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return entriesOf(t, text)
}

// image reads an OCI archive and checks its digests.
func image(t *testing.T, name string) v1.Image {
	t.Helper()
	folder := t.TempDir()
	output(t, "tar", "-x", "-C", folder, "-f", name)
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%s has %v, %v, want one image", name, list, err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// unpacked is the root folder of an image, with the devices that a container runtime makes.
func unpacked(t *testing.T, img v1.Image) jail {
	t.Helper()
	j := jail{t.TempDir(), 65532, 65532}
	if err := os.Chmod(filepath.Dir(j.root), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tar", "-x", "-p", "--numeric-owner", "-C", j.root)
	layers := mutate.Extract(img)
	defer layers.Close()
	cmd.Stdin = layers
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dev := filepath.Join(j.root, "dev")
	if err := errors.Join(os.Chmod(j.root, 0o755), os.MkdirAll(dev, 0o755), syscall.Mknod(filepath.Join(dev, "null"), syscall.S_IFCHR|0o666, 1<<8|3),
		os.Chmod(filepath.Join(dev, "null"), 0o666)); err != nil {
		t.Fatal(err)
	}
	return j
}

// within is a context for programs that could wait forever.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// write puts a file that everybody can read into a folder.
func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// mode wants a file's mode and owner.
func mode(t *testing.T, root, name string, want fs.FileMode, uid int) {
	t.Helper()
	info, err := os.Stat(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v of user %d", info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
	if wanted := fmt.Sprintf("%v of user %d", want, uid); got != wanted {
		t.Errorf("%s has %s, want %s", name, got, wanted)
	}
}
