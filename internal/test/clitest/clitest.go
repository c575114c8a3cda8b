// Package clitest has what the tests of commands share: the result of a run of the command, and the folders and documents that
// they work on.
package clitest

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
)

// The exit codes of pgfsm.
const (
	ExitYes     = 0
	ExitNo      = 1
	ExitCould   = 2 // the command could not be carried out
	ExitPending = 3
)

// A Result is the outcome of one run of the command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Member returns the value at a JSON pointer of standard output, or "" if there is none.
func (r Result) Member(pointer string) string {
	v, err := ValueAt([]byte(r.Stdout), pointer)
	if err != nil {
		return ""
	}
	return strings.Trim(string(v), `"`)
}

// Want fails the test unless the run has an exit code and its document has some members, given by pointer and value.
func (r Result) Want(t testing.TB, code int, members ...string) {
	t.Helper()
	if r.Code != code {
		t.Fatalf("exit code = %d, want %d\nstdout: %s\nstderr: %s", r.Code, code, r.Stdout, r.Stderr)
	}

	for i := 0; i+1 < len(members); i += 2 {
		if got := r.Member(members[i]); got != members[i+1] {
			t.Errorf("%s = %q, want %q\nstdout: %s", members[i], got, members[i+1], r.Stdout)
		}
	}
}

// Expect fails the test unless the run has an exit code and its output contains some words.
func (r Result) Expect(t testing.TB, code int, words ...string) {
	t.Helper()
	r.Want(t, code)
	for _, w := range words {
		if !strings.Contains(r.Stdout+r.Stderr, w) {
			t.Errorf("output lacks %q\nstdout: %s\nstderr: %s", w, r.Stdout, r.Stderr)
		}
	}
}

// ExitCode returns the exit code of a process that has ended with err.
func ExitCode(t testing.TB, err error) int {
	t.Helper()
	ended := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// Folder makes a folder with files, given by name and text.
func Folder(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		Write(t, path, files[i+1])
	}
	return dir
}

// Write writes a file that only its owner can read.
func Write(t testing.TB, path, text string) {
	t.Helper()
	check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// Read returns the text of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check.NoError(t, err)
	return string(text)
}

// Traces returns the traces of a folder.
func Traces(t testing.TB, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "trace_*.json"))
	check.NoError(t, err)
	return found
}

// ValueAt returns the value at a JSON pointer of a document.
func ValueAt(doc []byte, pointer string) (jsontext.Value, error) {
	v := jsontext.Value(doc)
	for token := range jsontext.Pointer(pointer).Tokens() {
		next, err := memberOf(v, token)
		if err != nil {
			return nil, errors.Join(errors.New(pointer), err)
		}
		v = next
	}
	return v, nil
}

// Quote returns a text as a JSON string.
func Quote(text string) string {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// memberOf returns one member of an object or item of an array.
func memberOf(v jsontext.Value, name string) (jsontext.Value, error) {
	switch v.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if err := json.Unmarshal(v, &members); err != nil {
			return nil, err
		}
		if m, ok := members[name]; ok {
			return m, nil
		}
	case '[':
		var items []jsontext.Value
		if err := json.Unmarshal(v, &items); err != nil {
			return nil, err
		}
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(items) {
			return items[i], nil
		}
	}
	return nil, errors.New("there is no such value")
}

// Holds reports whether a text contains a secret: as it is, or in JSON strings, however deep they are nested in others.
func Holds(text, secret string) bool { return holds(text, secret, 5) }

func holds(text, secret string, depth int) bool {
	if strings.Contains(text, secret) {
		return true
	}
	if depth == 0 || !strings.Contains(text, `\`) {
		return false
	}

	for from := 0; ; {
		open := strings.IndexByte(text[from:], '"')
		if open < 0 {
			return false
		}
		from += open
		end := from + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return false
		}
		inner, _ := jsontext.AppendUnquote(nil, text[from:end+1])
		if holds(string(inner), secret, depth-1) {
			return true
		}
		from = end + 1
	}
}

// WantNone fails the test if a text contains one of some secrets: as it is, percent-encoded, or in base64 alone or with other text around it.
func WantNone(t testing.TB, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		forms := []string{s, url.QueryEscape(s), url.PathEscape(s), strings.ToLower(url.QueryEscape(s)), strings.ToLower(url.PathEscape(s))}
		for i := range 3 { // three bytes are four digits
			whole := s[i : len(s)-(len(s)-i)%3]
			forms = append(forms, base64.StdEncoding.EncodeToString([]byte(whole)), base64.URLEncoding.EncodeToString([]byte(whole)))
		}
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%s: %q is shown or recorded", where, form)
			}
		}
	}
}

// Patience is far more time than any fault of a test may take.
const Patience = time.Minute

// Patient returns a context that is cancelled, not timed out, when a run takes longer than a fault may: the run then ends with another code
// than any that a fault is expected to end with.
func Patient(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(Patience, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}
