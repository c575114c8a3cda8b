package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy/canonical"
	"pgfsm/safefile"
)

// What [File.Set] changes.
const (
	Same     = "none" // the file has the entry already
	Added    = "added"
	Replaced = "replaced"
)

// A File is a client's file as it was read. Other users may write it: it is the client's, and nothing in it is used.
type File struct {
	path string // behind every symbolic link
	text []byte // nil: there is no file
	mode fs.FileMode
}

// Read reads a client's file. A file that does not exist is empty.
func Read(path string) (*File, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a symbolic link that leads nowhere: remove it, or make the file that it names", path)
		}
		return &File{path: path, mode: 0o600}, nil
	}
	if err != nil {
		return nil, err
	}
	text, info, err := safefile.Read(real)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return &File{real, text, info.Mode().Perm()}, nil
}

// Set returns the content of the file with an entry, under a name below a key, indented anew, and what that changes. All other members
// keep their order and their bytes. The errors quote nothing of the file, because secrets may be anywhere in it.
func (f *File) Set(key, name string, entry jsontext.Value) (edited []byte, change string, err error) {
	text := jsontext.Value(f.text)
	if len(bytes.TrimSpace(text)) == 0 {
		text = jsontext.Value("{}")
	}
	if err := checkObject(text); err != nil {
		return nil, "", err
	}
	servers := wire.Member(text, key)
	if servers == nil {
		servers = jsontext.Value("{}")
	} else if servers.Kind() != '{' {
		return nil, "", fmt.Errorf("%q is not an object", key)
	}
	change = Added
	if was := wire.Member(servers, name); was != nil {
		if sameJSON(was, entry) {
			return f.text, Same, nil
		}
		change = Replaced
	}
	if servers, err = wire.Set(servers, name, entry); err != nil {
		return nil, "", err
	}
	whole, err := wire.Set(text, key, servers)
	if err != nil {
		return nil, "", err
	}
	if err := whole.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, "", err
	}
	return append(whole, '\n'), change, nil
}

// checkObject reports where a text is not one strict JSON object.
func checkObject(text []byte) error {
	err := wire.Members(text, func(string, jsontext.Value) error { return nil })
	var syntax *jsontext.SyntacticError
	if err == nil || !errors.As(err, &syntax) {
		return err
	}
	line := 1 + bytes.Count(text[:min(int(syntax.ByteOffset), len(text))], []byte("\n"))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("line %d: a name is there twice", line)
	}
	return fmt.Errorf("line %d: this is not JSON", line)
}

func sameJSON(a, b jsontext.Value) bool {
	x, err := canonical.JSON(a)
	y, failed := canonical.JSON(b)
	return err == nil && failed == nil && bytes.Equal(x, y)
}

// Write replaces the file, if nobody changed it since it was read. It keeps the content that was read in a new file beside it, and returns
// that file's path; empty if there was none.
func (f *File) Write(text []byte) (backup string, err error) {
	if f.text == nil {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			return "", err
		}
	} else if backup, err = f.backUp(); err != nil {
		return backup, err
	}
	if err = safefile.Replace(f.path, f.text, text, f.mode); err != nil && backup != "" {
		err = errors.Join(err, os.Remove(backup))
	}
	return backup, err
}

// backUp writes the content that was read under the first free name.
func (f *File) backUp() (path string, err error) {
	for n := 1; ; n++ {
		if path = f.path + ".bak"; n > 1 {
			path += fmt.Sprintf(".%d", n)
		}
		if err = safefile.Create(path, f.text, f.mode); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}
