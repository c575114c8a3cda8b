//go:build unix

package upstream

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/wire"
)

func TestAChildIsStartedAnewByListOnly(t *testing.T) {
	u := upstreams(t, Limits{}, childServer(t, "dies-at-call"))
	mustList(t, u)
	if r := call(t.Context(), u, "child", `{}`); r.Code != CodeDied {
		t.Fatalf("Call() = %+v, want %s", r, CodeDied)
	}
	if r := call(t.Context(), u, "child", `{}`); r.Code != CodeUnreachable || r.Effect != EffectNotSent {
		t.Errorf("Call() to a dead child = %+v, want %s, not_sent", r, CodeUnreachable)
	}
	mustList(t, u)
}

func TestChildEnvironment(t *testing.T) {
	t.Setenv("PGFSM_SECRET_OF_OURS", "x")
	t.Setenv("TMPDIR", "/tmp")
	u := upstreams(t, Limits{}, childServer(t, "environment", Header{"LANG", "C"}, Header{"NAMED", "yes"}))
	env := wire.TextMember(mustList(t, u).Pages[0], "env")
	allowed := map[string]bool{"PATH": true, "HOME": true, "LANG": true, "TMPDIR": true, "NAMED": true, serveAs: true}
	for _, line := range strings.Split(env, "\n") {
		name, value, _ := strings.Cut(line, "=")
		if !allowed[name] {
			t.Errorf("the child has %s, want only PATH, HOME, LANG, TMPDIR and what is named", name)
		}
		if name == "LANG" && value != "C" {
			t.Errorf("LANG = %q, want the named value C", value)
		}
		delete(allowed, name)
	}
	if len(allowed) > 0 && allowed["NAMED"] {
		t.Error("the child lacks NAMED")
	}
}

// TestChildOfAnotherUser: root can start servers as another user, with that user's home; other users get an error.
func TestChildOfAnotherUser(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	check.NoError(t, err)
	server := Server{Name: "child", Type: TypeStdio, Command: "/bin/sh", Args: []string{"-c", `echo "uid $(id -u) of $HOME" >&2; exit 1`}, User: nobody}
	want := "operation not permitted"
	if os.Getuid() == 0 {
		want = "uid " + nobody.Uid + " of " + nobody.HomeDir
	}

	l := clientOf(upstreams(t, Limits{}, server)).List(t.Context())
	if reason := fmt.Sprint(l); !strings.Contains(reason, want) {
		t.Errorf("the listing is %s, want %q in its reason", reason, want)
	}
}

func TestCloseKillsTheFamily(t *testing.T) {
	for _, role := range []string{"family", "stubborn-family"} {
		t.Run(role, func(t *testing.T) { closeKills(t, role) })
	}
}

func closeKills(t *testing.T, role string) {
	noLeak(t)
	u := upstreams(t, Limits{}, childServer(t, role))
	page := mustList(t, u).Pages[0]
	var pids []int
	wire.Items(wire.Member(page, "pids"), func(item jsontext.Value, _ int) {
		pid, err := strconv.Atoi(string(item))
		check.NoError(t, err)
		pids = append(pids, pid)
	})
	if len(pids) != 2 {
		t.Fatalf("pids in %s = %v, want two", page, pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("process %d before Close(): %v, want it to live", pid, err)
		}
		if leads, err := unix.Getsid(pid); leads != pids[0] { // so it cannot open the terminal of the session that we belong to
			t.Errorf("process %d belongs to the session %d, %v, want one of its own", pid, leads, err)
		}
	}
	if err := u.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := syscall.Kill(pids[0], 0); err != syscall.ESRCH {
		t.Errorf("the child after Close(): %v, want it reaped", err)
	}
	// The grandchild is reaped by init, which takes its time; until then it is a zombie.
	eventually(t, "the grandchild died", func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pids[1]) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
