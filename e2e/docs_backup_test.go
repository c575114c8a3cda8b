package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/tool"
)

// TestDocsBackup follows docs/operate/backup.md: an operator copies the ledger of a running gateway, which goes on, restores the copy, sees that
// entries are missing, begins a new ledger, and practises with the copy.
func TestDocsBackup(t *testing.T) {
	t.Parallel()
	tool.Path(t, "sqlite3", "sqlite3")
	o := newOffice(t, holdLook, "")
	bot := o.agent("/mcp", o.ci)
	o.held(t, bot, `{"n":1}`)
	at := func(name string) string { return filepath.Join(o.dir, name) }
	key := command(t.Context(), nil, "ledger", "key", "new", "-c", o.config, "-o", at("pgfsm-log.key"))
	key.Want(t, exitYes)
	o.writes(t, "pgfsm-log.pub", key.Stdout)
	sign := func() {
		t.Helper()
		command(t.Context(), nil, "ledger", "checkpoint", "-c", o.config, "--key", at("pgfsm-log.key"), "-o", at("pgfsm.checkpoint")).Want(t, exitYes)
	}
	sign()
	o.writes(t, "older.checkpoint", clitest.Read(t, at("pgfsm.checkpoint")))
	bob := map[string]string{tokenVariable: o.bob}
	typed := strings.NewReplacer("/var/lib/pgfsm", o.dir, "/backup", o.dir, "/elsewhere", o.dir, "sqlite:restored.db", "sqlite:"+at("pgfsm-2026-11-26.db"),
		"pgfsm-log-2.key", at("pgfsm-log-2.key"))
	all := consoleCommands(t, "docs/operate/backup.md")
	if len(all) != 5 {
		t.Fatalf("the page has %d commands, want 5", len(all))
	}

	_, backup, _ := strings.Cut(clitest.Read(t, filepath.Join(repository, "docs/operate/backup.md")), "$ sqlite3 ")
	backup, _, _ = strings.Cut(backup, "\n")
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", "umask 077; sqlite3 "+typed.Replace(backup)).CombinedOutput(); err != nil {
		t.Fatalf("sqlite3 %s: %v\n%s", backup, err, out)
	}
	all[0].run(t, nil, typed, o.config, exitYes)
	o.held(t, bot, `{"n":2}`)
	sign()

	o.stop(t, exitYes)
	for _, name := range []string{"pgfsm.db", "pgfsm.db-wal", "pgfsm.db-shm"} {
		if err := os.Remove(at(name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	restore(t, at("pgfsm-2026-11-26.db"), at("pgfsm.db"))
	all[1].run(t, nil, typed, o.config, exitNo)
	o.writes(t, "pgfsm.yaml", strings.Replace(clitest.Read(t, o.config), inFile, "sqlite:pgfsm-2.db", 1))
	for _, c := range all[2:] {
		c.line, _, _ = strings.Cut(c.line, " > ") // into a file of a shell
		env := bob
		if strings.HasPrefix(c.line, "pgfsm ledger ") {
			env = nil // there is no admin
		}
		c.run(t, env, typed, o.config, exitYes)
	}
}

// restore copies a file that only its owner can read.
func restore(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	check.NoError(t, err)
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has the mode %v, %v", info.Mode(), err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	check.NoError(t, err)
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
}
