// Package pgurl reads the URL of a ledger in PostgreSQL. No error repeats anything of the URL but
// names of parameters: it may contain a password.
package pgurl

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// DefaultLease is the time after which a process that does not renew its lease loses its runs.
const DefaultLease = 15 * time.Second

// Bounds of a lease. A killed process keeps its runs until its lease runs out.
const (
	minLease = time.Second
	maxLease = 10 * time.Minute
)

const leaseParameter = "lease"

// parameters lists the allowed parameters of a URL. pgx would send any other one to the server,
// where a pooler rejects or ignores it.
var parameters = []string{"connect_timeout", "host", leaseParameter, "port", "sslcert", "sslkey", "sslmode",
	"sslrootcert", "target_session_attrs"}

// modes lists the values of sslmode that never continue without TLS if TLS fails.
var modes = []string{"disable", "require", "verify-ca", "verify-full"}

// IsURL reports whether a URL has the scheme of PostgreSQL.
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && (scheme == "postgres" || scheme == "postgresql")
}

// parse parses a URL. If a password contains a slash, a question mark or a number sign, that
// character ends the host: the rest of the password, and an at sign, then look like the database's
// name.
func parse(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || !IsURL(text) || u.Opaque != "" ||
		strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return nil, false
	}
	return u, true
}

// Name returns the host and the database of a URL.
func Name(text string) string {
	u, ok := parse(text)
	if !ok {
		return "postgres:"
	}
	return (&url.URL{Scheme: "postgres", Host: u.Host, Path: u.Path}).String()
}

// Parse returns the URL as pgx reads it, and the lease. An error continues a sentence that begins
// with the URL.
func Parse(text string) (connection string, lease time.Duration, err error) {
	u, ok := parse(text)
	if !ok {
		return "", 0, errors.New("is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE; write %XX for special characters of the password")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return "", 0, errors.New("has parameters that cannot be read; write %XX for special characters")
	}

	for name, values := range q { // one of several faults is reported
		if !slices.Contains(parameters, name) {
			return "", 0, fmt.Errorf("has the parameter %.40q, which is unknown: use some of %s", name,
				strings.Join(parameters, ", "))
		}
		if len(values) != 1 {
			return "", 0, fmt.Errorf("has the parameter %s more than once", name)
		}
	}

	lease = DefaultLease
	if q.Has(leaseParameter) {
		if lease, err = time.ParseDuration(q.Get(leaseParameter)); err != nil || lease < minLease || lease > maxLease {
			return "", 0, fmt.Errorf("has a parameter %s that is not a duration from %s to %s", leaseParameter,
				minLease, maxLease)
		}
		q.Del(leaseParameter)
		u.RawQuery = q.Encode()
	}

	if mode := q.Get("sslmode"); mode == "" && !nearby(u.Host, q.Get("host")) ||
		mode != "" && !slices.Contains(modes, mode) {
		return "", 0, fmt.Errorf("needs the parameter sslmode=verify-full, or, if you know why, another one of %s",
			strings.Join(modes, ", "))
	}

	return u.String(), lease, nil
}

// nearby reports whether all hosts, those of the URL and those of its parameter, are this machine.
func nearby(lists ...string) bool {
	for host := range strings.SplitSeq(strings.Trim(strings.Join(lists, ","), ","), ",") {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && !strings.HasPrefix(host, "/") && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
