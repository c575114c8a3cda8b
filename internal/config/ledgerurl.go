package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"pgfsm/traces/ledger/postgres/pgurl"
)

// sqliteScheme begins the URL of a ledger in an SQLite file; a path follows.
const sqliteScheme = "sqlite:"

// ledgerFile is the name of the ledger in the folder of traces.
const ledgerFile = "pgfsm.db"

// CheckLedger returns an error if a URL names no ledger. The error continues a sentence that begins
// with the URL. It repeats only the scheme, because the rest may contain a password.
func CheckLedger(text string) error {
	if pgurl.IsURL(text) {
		_, _, err := pgurl.Parse(text)
		return err
	}
	scheme, path, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		return errors.New("has no scheme")
	case scheme+":" != sqliteScheme:
		return fmt.Errorf("has the scheme %.20q, which is unknown: use sqlite or postgres", scheme)
	case path == "" || strings.HasSuffix(path, "/"):
		return errors.New("names no file")
	case strings.HasPrefix(path, "~"):
		return errors.New("begins with ~, which is not expanded")
	}
	return nil
}

// ledgerIn returns the URL of a ledger, with a relative path resolved against a folder.
func ledgerIn(text, folder string) string {
	path, ok := strings.CutPrefix(text, sqliteScheme)
	if !ok || filepath.IsAbs(path) {
		return text
	}
	return sqliteScheme + filepath.Join(folder, path)
}

// checkLedger checks the URL of a ledger. A reference stands for a part of the URL, or for all of
// it.
func checkLedger(s string) fault {
	pieces, f := splitReferences(s)
	if f != (fault{}) || len(pieces) == 1 && pieces[0].source != "" {
		return f
	}
	if strings.HasPrefix(s, sqliteScheme) && !isLiteral(s) {
		return fault{"holds a reference, which a path may not", remedyReference}
	}
	if err := CheckLedger(expandReferences(pieces, func(piece) string { return "reference" })); err != nil {
		return fault{err.Error(), `write "sqlite:pgfsm.db", or "postgres://USER:${env:NAME}@HOST/DATABASE?sslmode=verify-full"`}
	}
	return fault{}
}

// expandReferences replaces the references in a URL with their values. It escapes the values,
// unless one reference is the whole URL.
func expandReferences(pieces []piece, value func(piece) string) string {
	var b strings.Builder
	for _, p := range pieces {
		text := p.text
		if p.source != "" {
			if text = value(p); len(pieces) > 1 {
				text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// LedgerURL returns the URL of the ledger, with its references resolved. The error is of type
// [Errors] and contains no value.
func (l *Loaded) LedgerURL(getenv func(string) (string, bool), readFile Open) (string, error) {
	if strings.HasPrefix(l.Ledger, sqliteScheme) {
		return l.Ledger, nil
	}
	r, p := newResolver(l.file, getenv, readFile), path{"ledger"}
	pieces, _ := splitReferences(r.textAt(p))
	text := expandReferences(pieces, func(one piece) string { return r.resolveReference(one, p) })
	if _, _, err := pgurl.Parse(text); err != nil && len(r.faults) == 0 {
		r.addFault(p, "", "ledger %s, when its references are read", err)
	}
	return text, r.err()
}

// hiddenText replaces hidden values.
const hiddenText = "…"

// password matches the password in a URL.
var password = regexp.MustCompile(`(://[^:/@]*):.*@`)

// LedgerName returns the URL of a ledger without its password.
func LedgerName(text string) string { return password.ReplaceAllString(text, "$1:"+hiddenText+"@") }
