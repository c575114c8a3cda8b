package loopback_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
)

func TestListen(t *testing.T) {
	for _, c := range []struct {
		name, address string
		elsewhere     bool // what is refused is that it is not this machine
		ok            bool
	}{
		{"loopback", "127.0.0.1:0", false, true},
		{"all-of-127", "127.0.0.2:0", false, true},
		{"another-loopback", "127.1.2.3:0", false, true},
		{"localhost", "localhost:0", false, true},
		{"all-interfaces", "0.0.0.0:0", true, false},
		{"all-of-ipv6", "[::]:0", true, false},
		{"no-host", ":0", true, false},
		{"other-machine", "192.0.2.1:0", true, false},
		{"name", "example.com:0", true, false},
		{"another-name", "gateway.test:0", true, false},
		{"name-alike", "localhost.example.com:0", true, false},
		{"decimal", "2130706433:0", true, false},
		{"zone", "[::1%lo]:0", true, false},
		{"no-port", "127.0.0.1", false, false},
		{"port-one-past", "127.0.0.1:65536", false, false},
		{"port-by-name", "127.0.0.1:http", false, false},
		{"port-with-a-sign", "127.0.0.1:+1", false, false},
		{"empty", "", false, false},
		{"url", "http://127.0.0.1:1", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			on, err := loopback.Listen(c.address)
			if err == nil {
				on.Close()
			}
			if (err == nil) != c.ok || errors.Is(err, loopback.ErrElsewhere) != c.elsewhere {
				t.Errorf("Listen(%q) = %v, want ok %t, elsewhere %t", c.address, err, c.ok, c.elsewhere)
			}
		})
	}
}

// TestListenSocketReplacesNoOtherFile: what is at the path stays, unless it is a socket on which nobody listens.
func TestListenSocketReplacesNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, path, refused string
	}{
		{"nothing", "new.sock", ""},
		{"socket-of-an-ended-process", "stale.sock", ""},
		{"socket-of-a-process", "used.sock", "another process listens on"},
		{"file", "file", "address already in use"},
		{"dangling-link", "link", "address already in use"},
		{"folder-is-missing", "missing/a.sock", "no such file or directory"},
		{"folder-of-everybody", "open/a.sock", "every user may write to the folder"},
		{"too-long", strings.Repeat("a", 104), "a socket's has at most 103"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.path)
			switch c.path {
			case "stale.sock", "used.sock":
				on := listenUnix(t, path)
				if c.path == "stale.sock" {
					on.SetUnlinkOnClose(false)
					on.Close()
				}
			case "open/a.sock":
				if runtime.GOOS == "windows" {
					t.Skip("folders have no such mode")
				}
				check.NoError(t, errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.Chmod(filepath.Dir(path), 0o1777)))
			case "file":
				check.NoError(t, os.WriteFile(path, nil, 0o600))
			case "link":
				listenUnix(t, filepath.Join(dir, "other.sock")).Close()
				if err := os.Symlink("other.sock", path); err != nil {
					t.Skip(err)
				}
			}
			on, err := loopback.ListenSocket(path)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("ListenSocket = %v, want %q", err, c.refused)
				}
				return
			}
			check.NoError(t, err)
			if info, err := os.Lstat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != os.ModeSocket|0o600 {
				t.Errorf("the socket is %v, %v, want one that only its owner can use", info, err)
			}
			on.Close()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("after the end: %v, want no socket", err)
			}
		})
	}
}

// TestOneListensOnASocket: of many that replace a socket at once, one listens, and the others leave its socket alone.
func TestOneListensOnASocket(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), "a.sock")
		stale := listenUnix(t, path)
		stale.SetUnlinkOnClose(false)
		stale.Close()
		var all sync.WaitGroup
		listeners := make(chan net.Listener, 8)
		for range cap(listeners) {
			all.Go(func() {
				if on, err := loopback.ListenSocket(path); err == nil {
					listeners <- on
				}
			})
		}
		all.Wait()
		if n := len(listeners); n != 1 {
			t.Fatalf("%d listen on the socket, want 1", n)
		}
		on := <-listeners
		if conn, err := net.Dial("unix", path); err != nil {
			t.Error(err)
		} else {
			conn.Close()
		}
		on.Close()
		again, err := loopback.ListenSocket(path)
		check.NoError(t, err)
		again.Close()
	}
}

func listenUnix(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	on, err := net.Listen("unix", path)
	check.NoError(t, err)
	t.Cleanup(func() { on.Close() })
	return on.(*net.UnixListener)
}

func TestHost(t *testing.T) {
	for name, want := range map[string]bool{ // in any order: each stands alone
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.255.0.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "127.0.0.1:80": false, "[::1]": false, "::1%lo": false, "127.1": false, "0.0.0.0": false, "10.0.0.1": false,
	} {
		if got := loopback.Host(name); got != want {
			t.Errorf("Host(%q) = %t, want %t", name, got, want)
		}
	}
}
