package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"

	"pgfsm/config"
)

// TestPinsKeepLinkAndMode: the file behind a link is what is written, and it keeps its mode; what is new takes it over.
func TestPinsKeepLinkAndMode(t *testing.T) {
	t.Parallel()
	p := newPinned(t, `{}`, described("look", kind))
	real := filepath.Join(folder(t, "shared.json", `{"puppet":["look"]}`), "shared.json")
	link := filepath.Join(p.dir, "allowlist.json")
	for _, err := range []error{os.Chmod(real, 0o644), os.Remove(link), os.Symlink(real, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.pins("approve").want(t, exitYes)
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("Lstat(%s) = %v, %v, want a link", link, info, err)
	}
	for _, path := range []string{real, strings.TrimSuffix(real, ".json") + ".pins.json"} {
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
			t.Errorf("Stat(%s) = %v, %v, want mode 0644", path, info, err)
		}
	}
	p.pins("verify").want(t, exitYes)
	if left, err := os.ReadDir(filepath.Dir(real)); err != nil || len(left) != 2 {
		t.Errorf("ReadDir() = %v, %v, want the two files", left, err)
	}
}

// TestPinsAreNotWrittenOverAChange: whatever somebody else writes in the meantime stays, and so does all beside it.
func TestPinsAreNotWrittenOverAChange(t *testing.T) {
	t.Parallel()
	const allowlist = `{"puppet":["look"]}`
	for _, tt := range []struct {
		name    string
		change  map[string]string // files, while the servers are asked
		allowed string            // what the allowlist then holds
		says    string
	}{
		{"allowlist", map[string]string{"allowlist.json": `{}`}, `{}`, "is no longer what was read: run the command again"},
		{"definitions", map[string]string{"allowlist.pins.json": `{}`}, allowlist, "is no longer what was read: run the"},
		{"nothing", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPinned(t, allowlist, described("look", kind))
			answer := p.server.answer
			p.server.answer = func(method string) string {
				for name, text := range tt.change {
					if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
						t.Error(err)
					}
				}
				return answer(method)
			}
			r := p.pins("approve")
			if tt.says == "" {
				r.want(t, exitYes)
				return
			}
			if r.want(t, exitCould); !strings.Contains(r.stderr, tt.says) || r.stdout != "" {
				t.Errorf("stdout = %s, stderr = %s, want %q", r.stdout, r.stderr, tt.says)
			}
			if got := p.text("allowlist.json"); got != tt.allowed {
				t.Errorf("allowlist = %s, want %s", got, tt.allowed)
			}
			if left, err := filepath.Glob(filepath.Join(p.dir, ".*")); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestPinsAreWrittenByOneAtATime: while the lock is held by another, nothing is written.
func TestPinsAreWrittenByOneAtATime(t *testing.T) {
	t.Parallel()
	p := newPinned(t, `{"puppet":["look"]}`, described("look", kind))
	lock := flock.New(filepath.Join(p.dir, "allowlist.json"), flock.SetFlag(os.O_RDWR))
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatalf("TryLock() = %t, %v", ok, err)
	}
	if r := p.pins("approve"); r.code != exitCould || !strings.Contains(r.stderr, "is being written by another pgfsm") {
		t.Errorf("approve = %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "allowlist.pins.json")); !os.IsNotExist(err) {
		t.Errorf("definitions were written: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	p.pins("approve").want(t, exitYes)
}

// TestPinsOfManyAtOnce: of many that approve at once none undoes what another wrote.
func TestPinsOfManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 6
	var names, tools []string
	for i := range many {
		names = append(names, fmt.Sprintf(`"t%d"`, i))
		tools = append(tools, described(fmt.Sprint("t", i), kind))
	}
	p := newPinned(t, `{"puppet":[`+strings.Join(names, ",")+`]}`, tools...)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			for range 100 {
				r := command(t.Context(), nil, "pins", "approve", "-c", p.config, "puppet", fmt.Sprint("t", i))
				if r.code == exitYes {
					return
				}
				if !strings.Contains(r.stderr, "run the command again") {
					t.Errorf("approve = %d, %s", r.code, r.stderr)
					return
				}
			}
			t.Errorf("t%d never came to its pin", i)
		})
	}
	all.Wait()
	p.pins("verify").want(t, exitYes)
	if n := strings.Count(p.text("allowlist.pins.json"), `"sha256:`); n != many {
		t.Errorf("%d definitions are kept, want %d", n, many)
	}
}

// TestPinsTrustNoFileOfOthers: an allowlist or definitions that others may write are refused, not read.
func TestPinsTrustNoFileOfOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"allowlist.json", "allowlist.pins.json"} {
		t.Run(name, func(t *testing.T) {
			p := newPinned(t, `{"puppet":["look"]}`, described("look", kind))
			p.pins("approve").want(t, exitYes)
			if err := os.Chmod(filepath.Join(p.dir, name), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, words := range [][]string{{"diff"}, {"approve"}} {
				if r := p.pins(words...); r.code != exitCould || !strings.Contains(r.stderr, "chmod go-w") {
					t.Errorf("%s = %d, %s", words, r.code, r.stderr)
				}
			}
		})
	}
}

// TestPinsFileIsBounded: what would not be read again is not written.
func TestPinsFileIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		size int
		ok   bool
	}{{"at-the-limit", maxConfigBytes, true}, {"one-past", maxConfigBytes + 1, false}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(folder(t, "a.json", `{}`), "a.json")
			f := &allowlistFile{path: path, text: []byte(`{}`)}
			err := f.replace(f.beside(), nil, make([]byte, tt.size))
			if (err == nil) != tt.ok {
				t.Errorf("replace(%d bytes) = %v, want ok %t", tt.size, err, tt.ok)
			}
		})
	}
}

// TestPinsScope: the words choose tools, and never one that is not there.
func TestPinsScope(t *testing.T) {
	tools, pins, err := config.ReadPins("a.json", []byte(`{"s":["a","b"],"r":["a"],"empty":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	f := &allowlistFile{tools: tools, pins: pins}
	for _, tt := range []struct {
		words string
		rows  int // -1: an error
	}{{"", 3}, {"s", 2}, {"empty", 0}, {"s a", 1}, {"q", -1}, {"s c", -1}, {"empty a", -1}, {"a", -1}} {
		rows, err := f.scope(strings.Fields(tt.words))
		if got := len(rows); (err == nil) != (tt.rows >= 0) || err == nil && got != tt.rows {
			t.Errorf("scope(%q) = %d rows, %v, want %d", tt.words, got, err, tt.rows)
		}
	}
}
