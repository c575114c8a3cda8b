package clientfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/safefile"
	"pgfsm/mcp/wire"
)

// What [File.Set] changes.
const (
	Same     = "none" // the file has the entry already
	Added    = "added"
	Replaced = "replaced"
)

// A File is a client's file as it was read. Other users may write it: it is the client's, and
// nothing in it is used.
type File struct {
	path string // the path without symbolic links
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

// Set returns the content of the file with an entry, under a name below a key, indented anew, and
// what that changes. All other members keep their order and their bytes, without the removed
// entries. The errors quote nothing of the file, because secrets may be anywhere in it.
func (f *File) Set(key, name string, entry jsontext.Value, removed ...string) (edited []byte, change string,
	err error) {
	text, servers, err := f.readObject(key)
	if err != nil {
		return nil, "", err
	}

	change = Added
	if current := wire.Member(servers, name); current != nil {
		switch equal := sameJSON(current, entry); {
		case equal && len(removed) == 0:
			return f.text, Same, nil
		case equal:
			change = Same
		default:
			change = Replaced
		}
	}

	if servers, err = wire.Set(servers, name, entry); err != nil {
		return nil, "", err
	}

	for _, name := range removed {
		if servers, err = wire.Set(servers, name, nil); err != nil {
			return nil, "", err
		}
	}

	document, err := wire.Set(text, key, servers)
	if err != nil {
		return nil, "", err
	}
	edited, err = indented(document)
	return edited, change, err
}

// readObject returns the whole file and the object below a key; either is empty if it is not there.
func (f *File) readObject(key string) (text, object jsontext.Value, err error) {
	text = jsontext.Value(f.text)
	if len(bytes.TrimSpace(text)) == 0 {
		text = jsontext.Value("{}")
	}
	if err := checkObject(text); err != nil {
		return nil, nil, err
	}
	if object = wire.Member(text, key); object == nil {
		object = jsontext.Value("{}")
	}
	if object.Kind() != '{' {
		return nil, nil, fmt.Errorf("%q is not an object", key)
	}
	return text, object, nil
}

// indented indents a file anew.
func indented(document jsontext.Value) ([]byte, error) {
	if err := document.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	return append(document, '\n'), nil
}

// A Server is the target of a gateway's connection: a URL, or a command.
type Server struct {
	Name, URL, Command string
	Args               []string
}

// Direct returns the names of entries with which the client bypasses a gateway at a URL: those of
// its servers, by their name or by what they connect to, and all others. own is the prefix of the
// names of the gateway's own entries.
func (f *File) Direct(key, own, gateway string, servers []Server) (served, others []string) {
	wire.ForEachMember(wire.Member(f.text, key), func(p wire.Piece) {
		var e struct {
			Command   string   `json:"command"`
			Args      []string `json:"args"`
			URL       string   `json:"url"`
			HTTPURL   string   `json:"httpUrl"`
			ServerURL string   `json:"serverUrl"`
			Disabled  bool     `json:"disabled"`
		}

		_ = json.Unmarshal(p.Value, &e) // an entry that is not like others has a name
		url := cmp.Or(e.URL, e.HTTPURL, e.ServerURL)
		isTarget := func(s Server) bool {
			return s.Name == p.Name || url != "" && url == s.URL ||
				e.Command != "" && e.Command == s.Command && slices.Equal(e.Args, s.Args)
		}

		switch {
		case p.Name == own || strings.HasPrefix(p.Name, own+"-"), gateway != "" && strings.HasPrefix(url, gateway+"/"):
		case slices.ContainsFunc(servers, isTarget):
			served = append(served, p.Name)
		case e.Disabled: // the client does not start it
		default:
			others = append(others, p.Name)
		}
	})
	return served, others
}

// checkObject reports the place at which a text is not one strict JSON object.
func checkObject(text []byte) error {
	err := wire.CheckObject(text)
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return err // also nil
	}
	line := 1 + bytes.Count(text[:min(int(syntax.ByteOffset), len(text))], []byte("\n"))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("line %d: a name is there twice", line)
	}
	return fmt.Errorf("line %d: this is not JSON", line)
}

func sameJSON(a, b jsontext.Value) bool {
	canonicalA, errA := canonical.JSON(a)
	canonicalB, errB := canonical.JSON(b)
	return errors.Join(errA, errB) == nil && bytes.Equal(canonicalA, canonicalB)
}

// Write replaces the file, if it has not changed since it was read. It keeps the content that was
// read in a new file beside it, and returns that file's path; empty if there was none.
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
