// Command packaging builds the packages of a release: archives, Debian packages, container images,
// SBOMs and checksums. It is a module of its own, so that the gateway's module does not require
// what only packages need.
//
//	go run . -out ../dist [-targets linux/amd64,...] [-debian ROOT] [-a]
//
// It builds the commit that is checked out, in a clone.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Tools in other languages of packages, run from the module proxy in these versions.
const (
	nfpm      = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"
	cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
)

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// goFlags take the place of the GOFLAGS of the machine: all builds have the same flags. The version
// comes from the checkout.
const goFlags = "GOFLAGS=-trimpath -buildvcs=true -mod=readonly"

func main() {
	out := flag.String("out", "dist", "the `folder` of the packages; it is emptied first")
	targets := flag.String("targets", allTargets, "what to build for: GOOS/GOARCH, with commas")
	debian := flag.String("debian", "", "the root `folder` of a Debian system with Node, for the image pgfsm-node (linux/amd64)")
	rebuild := flag.Bool("a", false, "compile everything again, as go build -a does")
	flag.Parse()
	if err := buildRelease(*out, strings.Split(*targets, ","), *debian, *rebuild); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A binary is pgfsm with its small program for hooks, built for one target.
type binary struct {
	src          string // the checkout
	goos, goarch string
	path         string
	hook         string // pgfsm-hook, beside it
	version      string // without the v of the tag
	revision     string
	committed    time.Time
	notices      []byte // the licences of the linked modules
}

// buildRelease builds everything.
func buildRelease(out string, targets []string, debian string, rebuild bool) error {
	work, err := os.MkdirTemp("", "pgfsm-dist")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}

	// A clone has no uncommitted changes, and go build finds no revision in a worktree.
	src := filepath.Join(work, "src")
	if _, err := runCommand(".", nil, "git", "clone", "--quiet", "..", src); err != nil {
		return err
	}

	for _, target := range targets {
		goos, goarch, _ := strings.Cut(target, "/")
		b, err := buildBinary(src, filepath.Join(work, goos+"_"+goarch), goos, goarch, rebuild)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		if err := writePackages(out, b, debian); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}

	return writeChecksums(out)
}

// writePackages makes all packages of one binary.
func writePackages(out string, b *binary, debian string) error {
	if err := writeArchive(out, b); err != nil {
		return err
	}
	if err := writeSBOM(out, b); err != nil {
		return err
	}
	if b.goos != "linux" {
		return nil
	}
	if err := writeDeb(out, b); err != nil {
		return err
	}
	if err := scratchImage(out, b); err != nil {
		return err
	}
	if debian == "" || b.goarch != "amd64" {
		return nil
	}
	return nodeImage(out, b, debian)
}

// buildBinary builds pgfsm and pgfsm-hook.
func buildBinary(src, work, goos, goarch string, rebuild bool) (*binary, error) {
	b := &binary{src: src, goos: goos, goarch: goarch, path: filepath.Join(work, "pgfsm")}
	b.hook = b.path + "-hook"
	if goos == "windows" {
		b.path += ".exe"
		b.hook += ".exe"
	}

	for path, program := range map[string]string{b.path: "./cmd/pgfsm", b.hook: "./cmd/pgfsm-hook"} { // in any order
		if _, err := runCommand(b.src, b.goEnvironment(), "go", "build", "-a="+strconv.FormatBool(rebuild),
			"-ldflags=-s -w", "-o", path, program); err != nil {
			return nil, err
		}
	}
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return nil, err
	}

	b.version = strings.TrimPrefix(info.Main.Version, "v")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			if b.committed, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return nil, err
			}
		}
	}

	if b.revision == "" || b.committed.IsZero() {
		return nil, errors.New("the binary has no revision")
	}

	b.notices, err = collectNotices(b)
	return b, err
}

// goEnvironment says what to build for. CGO_ENABLED, GOAMD64 and GOARM64 are set so that the
// machine's values do not count.
func (b *binary) goEnvironment() []string {
	return []string{goFlags, "GOOS=" + b.goos, "GOARCH=" + b.goarch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT="}
}

// fileName is the name of a package without its ending.
func (b *binary) fileName(product string) string {
	return product + "_" + b.version + "_" + b.goos + "_" + b.goarch
}

// runCommand runs a program in a folder and returns its standard output.
func runCommand(dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, nil
}

// writeSBOM lists the modules of a binary, which its build information names.
func writeSBOM(out string, b *binary) error {
	_, err := runCommand(b.src, nil, "go", "run", cyclonedx, "bin", "-json", "-std", "-noserial", "-notimestamp",
		"-version",
		"v"+b.version,
		"-output", filepath.Join(out, b.fileName("pgfsm")+".cdx.json"), b.path)
	return err
}

// writeDeb makes the Debian package that nfpm.yaml describes.
func writeDeb(out string, b *binary) error {
	text := filepath.Join(filepath.Dir(b.path), "THIRD_PARTY_NOTICES")
	if err := os.WriteFile(text, b.notices, 0o644); err != nil {
		return err
	}
	_, err := runCommand(b.src, []string{"PGFSM_ARCH=" + b.goarch, "PGFSM_VERSION=" + b.version,
		"PGFSM_BINARY=" + b.path,
		"PGFSM_HOOK=" + b.hook,
		"PGFSM_NOTICES=" + text,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.committed.Unix())},
		"go", "run", nfpm, "package", "--config", "packaging/nfpm.yaml", "--packager", "deb", "--target",
		filepath.Join(out, b.fileName("pgfsm")+".deb"))
	return err
}

// writeChecksums writes SHA256SUMS, which sha256sum -c reads.
func writeChecksums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
