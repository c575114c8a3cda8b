package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

const minimal = "version: 1\nservers:\n  docs: {url: \"https://docs.example.com/mcp\"}\nallowlist: allow.json\n"

// openMap opens the files of a map, by their cleaned path.
func openMap(files map[string]string) Open {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func TestDefaultsAreThoseOfPolicy(t *testing.T) {
	l, err := Load("pgfsm.yaml", openMap(map[string]string{"pgfsm.yaml": minimal, "allow.json": "{}"}), Overrides{})
	check.NoError(t, err)
	if diff := cmp.Diff(policy.DefaultLimits(), l.Content.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if got := l.Content.Servers[0].Timeout; got != policy.DefaultTimeout {
		t.Errorf("timeout = %d, want %d", got, policy.DefaultTimeout)
	}
	if got := l.Content.Input.MaxBytes; got != policy.DefaultInputBytes {
		t.Errorf("max_bytes = %d, want %d", got, policy.DefaultInputBytes)
	}
}

func TestRelativePathsCountFromTheFile(t *testing.T) {
	abs := filepath.Join(string(filepath.Separator), "etc", "allow.json")
	text := "version: 1\nservers:\n  a: {command: ./bin/a}\n  b: {command: b}\n  c: {command: /bin/c}\nallowlist: %s\n" +
		"outputs: {a: {t: ../types/t.json}}\ntraces: {dir: ../traces}\n"
	files := map[string]string{
		"sub/dir/pgfsm.yaml":       fmt.Sprintf(text, "lists/allow.json"),
		"sub/dir/abs.yaml":         fmt.Sprintf(text, abs),
		"here.yaml":                minimal + "x: 1",
		"sub/types/t.json":         "{}",
		"sub/dir/lists/allow.json": "{}",
		abs:                        `{"b": ["t"]}`,
	}
	l, err := Load("sub/dir/pgfsm.yaml", openMap(files), Overrides{})
	check.NoError(t, err)
	s := l.Servers
	got := []string{s[0].Command, s[1].Command, s[2].Command, l.TracesDir, l.Content.Servers[0].Command}
	if diff := cmp.Diff([]string{"sub/dir/bin/a", "b", "/bin/c", "sub/traces", "./bin/a"}, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if l, err = Load("sub/dir/abs.yaml", openMap(files), Overrides{}); err != nil || len(l.Content.Allowlist) != 1 {
		t.Errorf("an absolute path was not read: %v", err)
	}
	files["pgfsm.yaml"] = "version: 1\nservers: {a: {command: ./a}}\nallowlist: sub/dir/lists/allow.json\n"
	if l, err = Load("pgfsm.yaml", openMap(files), Overrides{}); err != nil {
		t.Fatal(err)
	}
	if got := l.Servers[0].Command; got != "./a" {
		t.Errorf("command = %q, want %q: a name would be looked for in PATH", got, "./a")
	}
}

func TestOverrides(t *testing.T) {
	files := map[string]string{"d/pgfsm.yaml": minimal, "other.json": `{"docs": ["x"]}`}
	over := Overrides{Allowlist: "other.json", TracesDir: "/var/t", Summary: policy.SummaryAlways}
	l, err := Load("d/pgfsm.yaml", openMap(files), over)
	check.NoError(t, err)
	if l.TracesDir != "/var/t" || l.Content.Summary != policy.SummaryAlways || len(l.Content.Allowlist) != 1 {
		t.Errorf("Load = %+v, want every override to hold", l)
	}
}

func TestConfigurationThatIsNotThere(t *testing.T) {
	_, err := Load("pgfsm.yaml", openMap(nil), Overrides{})
	const want = "pgfsm.yaml: cannot be read: file does not exist\n       pgfsm init writes one to begin with"
	if err == nil || err.Error() != want {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestErrorsAreValues(t *testing.T) {
	_, err := parseConfig("x.yaml", []byte(minimal+"limit: 1\nenv: 2\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 {
		t.Fatalf("parse = %v, want two errors", err)
	}
	want := &Error{File: "x.yaml", Line: 5, Col: 1, Key: "limit", Problem: `unknown key "limit" in the file`,
		Remedy: "did you mean limits?"}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Errorf("first error (-want +got):\n%s", diff)
	}
}

// TestTextThatNoFileMayHold shows what is refused before YAML is read, where a txtar archive cannot.
func TestTextThatNoFileMayHold(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"byte-order-mark", "\uFEFF" + minimal, "1:1: the file begins with a byte order mark"},
		{"nul", "version: 1\n# \x00", "2:3: the character U+0000"},
		{"lone-carriage-return", "version: 1\r", "1:11: the character U+000D"},
		{"not-utf-8", "version: 1\nenv: é\xff", "2:7: byte 0xFF is not UTF-8"},
		{"line-separator", "env: a\u2028b", "1:7: the character U+2028"},
		{"bidi-override-in-a-value", minimal + "env: a\u202eb", "5:6: env holds"},
		{"deep-brackets", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "1:65: the file nests deeper"},
		{"a-million-brackets", strings.Repeat("[", MaxFileBytes), "not YAML"},
		{"deep-dashes", strings.Repeat("- ", MaxDepth+1) + "a", "1:129: the file nests deeper"},
		{"deep-indent", func() string {
			var b strings.Builder
			for i := range MaxDepth + 1 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(), "nests deeper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseConfig("c.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("parse = %.200v, want %q in it", err, c.want)
			}
		})
	}
	dos := strings.ReplaceAll(minimal, "\n", "\r\n") + "limit: 1"
	if _, err := parseConfig("c.yaml", []byte(dos)); err == nil || !strings.Contains(err.Error(), "c.yaml:5:1:") {
		t.Errorf("Parse with CRLF = %v, want a fault at 5:1", err)
	}
}
