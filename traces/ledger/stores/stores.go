// Package stores opens the store that a ledger's URL names. The scheme of the URL says which kind of store it is:
// sqlite:pgfsm.db is a ledger in an SQLite file.
package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// A Purpose is what a store is opened for.
type Purpose int

// The purposes.
const (
	ToRead   Purpose = iota // nothing is made or changed
	ToChange                // a few writes to a ledger that exists
	ToWrite                 // a few writes; a ledger that does not exist is made
	ToRecord                // many calls, over a long time
)

// ErrMissing means that there is no ledger of that name yet.
var ErrMissing = errors.New("there is no ledger")

// A scheme is a kind of store. Its functions take the URL without the scheme.
type scheme struct {
	check func(rest string) error
	in    func(rest, folder string) string
	open  func(rest string, p Purpose) (ledger.Store, error)
}

var schemes = map[string]scheme{
	"sqlite": {check: sqlite.CheckPath, in: sqlite.PathIn, open: openSQLite},
}

// Pattern matches a URL with a known scheme.
var Pattern = regexp.MustCompile("^sqlite:")

// find returns the scheme of a URL, and the rest. No message repeats the rest: it may hold a password.
func find(url string) (s scheme, name, rest string, err error) {
	name, rest, ok := strings.Cut(url, ":")
	if !ok {
		return s, "", "", errors.New("has no scheme")
	}
	if s, ok = schemes[name]; !ok {
		return s, "", "", fmt.Errorf("has the scheme %.20q, which is unknown: the only one is sqlite", name)
	}
	return s, name, rest, nil
}

// Check reports why a URL names no ledger. The error continues a sentence that begins with the URL.
func Check(url string) error {
	s, _, rest, err := find(url)
	if err != nil {
		return err
	}
	return s.check(rest)
}

// In returns the URL of a ledger whose relative path, if it has one, begins in a folder.
func In(url, folder string) string {
	s, name, rest, err := find(url)
	if err != nil {
		return url
	}
	return name + ":" + s.in(rest, folder)
}

// Open opens a store. The error is [ErrMissing] if it does not exist and is opened to read or to change.
func Open(url string, p Purpose) (ledger.Store, error) {
	s, _, rest, err := find(url)
	if err == nil {
		err = s.check(rest)
	}
	if err != nil {
		return nil, fmt.Errorf("the URL of the ledger %w; write sqlite:PATH", err)
	}
	store, err := s.open(rest, p)
	if (p == ToRead || p == ToChange) && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w %s: the first run with it makes it", ErrMissing, url)
	}
	return store, err
}

func openSQLite(path string, p Purpose) (ledger.Store, error) {
	switch p {
	case ToRead:
		return opened(sqlite.OpenReadOnly(path))
	case ToChange:
		if err := sqlite.Exists(path); err != nil {
			return nil, err
		}
	}
	return opened(sqlite.Open(path, sqlite.Options{Tail: p == ToRecord}))
}

// opened returns a store without its type, and no store if there is none.
func opened(s *sqlite.Store, err error) (ledger.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
