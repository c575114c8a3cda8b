package main_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const unit = "debian/pgfsm.service"

// exposure judges a unit as systemd does, from 0 (closed) to 10.
func exposure(t *testing.T, unit string) float64 {
	t.Helper()
	text := output(t, "systemd-analyze", "security", "--offline=true", "--no-pager", unit)
	_, line, found := strings.Cut(text, "Overall exposure level for pgfsm.service: ")
	level, err := strconv.ParseFloat(strings.Fields(line + " none")[0], 64)
	if !found || err != nil {
		t.Fatalf("no exposure level: %v\n%s", err, text)
	}
	return level
}

func TestUnitIsHardened(t *testing.T) {
	wanted(t)
	if level := exposure(t, unit); level > 4 {
		t.Errorf("exposure level %.1f, want at most 4.0", level)
	}
}

// TestUnitCanFail: a unit without the restrictions is exposed.
func TestUnitCanFail(t *testing.T) {
	wanted(t)
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	start, _, _ := bytes.Cut(text, []byte("NoNewPrivileges"))
	open := filepath.Join(t.TempDir(), "pgfsm.service")
	if err := os.WriteFile(open, start, 0o644); err != nil {
		t.Fatal(err)
	}
	if level := exposure(t, open); level <= 4 {
		t.Errorf("exposure level %.1f without restrictions, want more than 4.0", level)
	}
}

// TestDeb installs the package into a Debian system, runs its program there, and removes it.
func TestDeb(t *testing.T) {
	wanted(t)
	root := filepath.Join(t.TempDir(), "root")
	output(t, "cp", "-a", debian, root)
	output(t, "cp", product(t, "pgfsm_*_linux_amd64.deb"), filepath.Join(root, "pgfsm.deb"))
	output(t, "chroot", root, "dpkg", "-i", "/pgfsm.deb")

	ids := strings.Fields(output(t, "chroot", root, "sh", "-c", "id -u pgfsm; id -g pgfsm"))
	uid, err := strconv.Atoi(ids[0])
	if err != nil || uid == 0 {
		t.Fatalf("user %v, %v", ids, err)
	}
	gid, err := strconv.Atoi(ids[1])
	if err != nil {
		t.Fatal(err)
	}
	mode(t, root, "etc/pgfsm/pgfsm.yaml", 0o644, 0)
	mode(t, root, "usr/bin/pgfsm-hook", 0o755, 0)
	text, err := os.ReadFile(filepath.Join(root, "etc/pgfsm/pgfsm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pages := regexp.MustCompile(`docs/\S+\.md`).FindAllString(string(text), -1)
	if len(pages) == 0 {
		t.Error("the configuration names no page")
	}
	for _, page := range append(pages, "docs/operate/alerts.yaml") {
		mode(t, root, "usr/share/doc/pgfsm/"+page, 0o644, 0)
	}
	mode(t, root, "etc/pgfsm/credentials", fs.ModeDir|0o700, 0)
	output(t, "cp", "-a", "/usr/lib/systemd/system/.", filepath.Join(root, "usr/lib/systemd/system")) // the units that it names
	output(t, "systemd-analyze", "verify", "--man=no", "--root="+root, "pgfsm.service")

	state := filepath.Join(root, "var/lib/pgfsm") // systemd makes it
	if err := errors.Join(os.Mkdir(state, 0o700), os.Chown(state, uid, gid)); err != nil {
		t.Fatal(err)
	}
	jail{root, uid, gid}.runs(t)

	output(t, "chroot", root, "dpkg", "--purge", "pgfsm")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/pgfsm")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program after a purge: %v, want none", err)
	}
	if _, err := os.Stat(filepath.Join(state, "pgfsm.db")); err != nil {
		t.Errorf("the ledger after a purge: %v", err)
	}
}

// TestScratchImage: nothing but the program can be executed, and it runs without rights.
func TestScratchImage(t *testing.T) {
	wanted(t)
	img := image(t, product(t, "pgfsm_*_linux_amd64.oci.tar"))
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != "amd64" {
		t.Errorf("the image is for %s and runs as %q", config.Architecture, config.Config.User)
	}
	j := unpacked(t, img)
	var programs []string
	err = filepath.WalkDir(j.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode()&0o111 != 0 {
			programs = append(programs, strings.TrimPrefix(path, j.root))
		}
		return nil
	})
	if err != nil || strings.Join(programs, " ") != "/usr/bin/pgfsm" {
		t.Errorf("programs: %v, %v, want /usr/bin/pgfsm alone", programs, err)
	}
	text, err := os.ReadFile(filepath.Join(j.root, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) || bytes.Count(text, []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("CA certificates: %d bytes, %v", len(text), err)
	}
	if entry := config.Config.Entrypoint[0]; entry != "/usr/bin/pgfsm" {
		t.Errorf("entry point %s", entry)
	}
	j.runs(t)
}

// TestNodeImage: pgfsm calls a tool of a server that it starts with Node. No program has the rights of its owner.
func TestNodeImage(t *testing.T) {
	wanted(t)
	img := image(t, product(t, "pgfsm-node_*_linux_amd64.oci.tar"))
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" {
		t.Errorf("it runs as %v, %v", config, err)
	}
	j := unpacked(t, img)
	err = filepath.WalkDir(j.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	j.prints(t, "v24.", "/usr/local/bin/node", "--version")
	j.prints(t, "11.", "/usr/local/bin/npx", "--version")
	j.runs(t)

	modules := filepath.Join(j.root, "srv", "node_modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "cp", "-a", "../interop/node_modules/.", modules)
	write(t, j.root, "etc/pgfsm/pgfsm.yaml", `version: 1
servers:
  memory:
    type: stdio
    command: node
    args: [/srv/node_modules/@modelcontextprotocol/server-memory/dist/index.js]
    env: {MEMORY_FILE_PATH: /var/lib/pgfsm/memory.json}
allowlist: allowlist.json
ledger: sqlite:/var/lib/pgfsm/pgfsm.db
`)
	write(t, j.root, "etc/pgfsm/allowlist.json", `{"memory": ["create_entities"]}`)
	out, err := j.command(within(t), "/usr/bin/pgfsm", "call", "-c", "/etc/pgfsm/pgfsm.yaml", "memory", "create_entities",
		`{"entities": [{"name": "pgfsm", "entityType": "gateway", "observations": ["runs Node"]}]}`).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(j.root, "var/lib/pgfsm/memory.json")); !strings.Contains(string(text), "runs Node") {
		t.Errorf("the server wrote %q, %v", text, err)
	}
}

// TestArchive: root owns the files, the binary runs, and the checksums are those of the files.
func TestArchive(t *testing.T) {
	wanted(t)
	name := product(t, "pgfsm_*_linux_amd64.tar.gz")
	inside := make(map[string]bool)
	for _, h := range archived(t, name) {
		inside[filepath.Base(h.Name)] = true
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
	}
	for _, file := range []string{"pgfsm", "pgfsm-hook", "LICENSE", "THIRD_PARTY_NOTICES", "README.md"} {
		if !inside[file] {
			t.Errorf("the archive lacks %s", file)
		}
	}
	dir := t.TempDir()
	output(t, "tar", "-x", "--strip-components=1", "-C", dir, "-f", name)
	if text := output(t, filepath.Join(dir, "pgfsm"), "version"); !strings.Contains(text, "revision ") || strings.Contains(text, "with changes") {
		t.Errorf("version prints %s", text)
	}
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = dist
	if out, err := sums.CombinedOutput(); err != nil || !strings.Contains(string(out), filepath.Base(name)+": OK") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSBOM: the list of modules names those that the binary contains.
func TestSBOM(t *testing.T) {
	wanted(t)
	text, err := os.ReadFile(product(t, "pgfsm_*_linux_amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &list); err != nil || list.BOMFormat != "CycloneDX" {
		t.Fatalf("format %q, %v", list.BOMFormat, err)
	}
	names := make(map[string]string)
	for _, c := range list.Components {
		names[c.Name] = c.Version
	}
	for _, name := range []string{"modernc.org/sqlite", "cel.dev/cel-go", "std"} {
		if names[name] == "" {
			t.Errorf("the list of %d modules lacks %s", len(names), name)
		}
	}
}

// TestBuildsAreEqual compiles everything again, in other folders, and compares each package.
func TestBuildsAreEqual(t *testing.T) {
	wanted(t)
	if os.Getenv("PGFSM_RELEASE") == "" {
		t.Skip("make release runs this")
	}
	again := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command("go", "run", ".", "-out", again, "-targets", "linux/amd64", "-a")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := os.ReadDir(again)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, e := range entries {
		if e.Name() == "SHA256SUMS" {
			continue
		}
		first, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(again, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		compared++
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs between two builds", e.Name())
		}
	}
	if compared != 4 {
		t.Errorf("%d packages compared, want 4: archive, SBOM, Debian package, image", compared)
	}
}
