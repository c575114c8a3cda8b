package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// sqliteScheme begins the URL of a ledger in an SQLite file; a path follows.
const sqliteScheme = "sqlite:"

var ledgerPattern = regexp.MustCompile("^" + sqliteScheme)

// CheckLedger reports why a URL names no ledger. The error continues a sentence that begins with the URL, and repeats none of it but
// the scheme: the rest may hold a password.
func CheckLedger(url string) error {
	scheme, path, ok := strings.Cut(url, ":")
	switch {
	case !ok:
		return errors.New("has no scheme")
	case scheme+":" != sqliteScheme:
		return fmt.Errorf("has the scheme %.20q, which is unknown: the only one is sqlite", scheme)
	case path == "" || strings.HasSuffix(path, "/"):
		return errors.New("names no file")
	case strings.HasPrefix(path, "~"):
		return errors.New("begins with ~, which is not expanded")
	}
	return nil
}

// ledgerIn returns the URL of a ledger whose path, if it is relative, begins in a folder.
func ledgerIn(url, folder string) string {
	path, ok := strings.CutPrefix(url, sqliteScheme)
	if !ok || filepath.IsAbs(path) {
		return url
	}
	return sqliteScheme + filepath.Join(folder, path)
}
