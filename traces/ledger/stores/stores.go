// Package stores opens the store that a ledger's URL names. The scheme of the URL says which kind
// of store it is: sqlite:pgfsm.db is a ledger in an SQLite file, postgres://… one in a database of
// PostgreSQL. Package config judges URLs that users write.
package stores

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgurl"
	"pgfsm/traces/ledger/sqlite"
)

// A Purpose says whether a store is opened to read, to change or to write.
type Purpose int

// The purposes.
const (
	ToRead   Purpose = iota // nothing is made or changed
	ToChange                // an existing ledger is changed
	ToWrite                 // a missing ledger is made
)

// ErrMissing means that there is no ledger of that name yet.
var ErrMissing = errors.New("there is no ledger")

// Open opens a store. If a file does not exist and is opened to read or to change, the error is
// [ErrMissing]. Open never makes a database.
func Open(url string, p Purpose) (ledger.Store, error) {
	switch isPostgres := pgurl.IsURL(url); {
	case isPostgres && p == ToRead:
		return opened(postgres.OpenReadOnly(url))
	case isPostgres:
		return opened(postgres.Open(url))
	}
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" { // no message repeats the URL: it may hold a password
		return nil, errors.New("the URL of the ledger is unknown: write sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	store, err := openSQLite(path, p)
	if errors.Is(err, fs.ErrNotExist) && p != ToWrite {
		err = fmt.Errorf("%w %s: the first run with it makes it", ErrMissing, url)
	}
	return opened(store, err)
}

// opened returns an opened store, and none after an error.
func opened[S ledger.Store](store S, err error) (ledger.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Name returns a name of the ledger for people and for the log, which may be exported. For a file
// it is the last element of the path, because folders name users and customers. For a database it
// is the host and the name.
func Name(url string) string {
	if pgurl.IsURL(url) {
		return pgurl.Name(url)
	}
	return "sqlite:" + filepath.Base(strings.TrimPrefix(url, "sqlite:"))
}

func openSQLite(path string, p Purpose) (*sqlite.Store, error) {
	switch p {
	case ToRead:
		return sqlite.OpenReadOnly(path)
	case ToChange:
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
	}
	return sqlite.Open(path)
}
