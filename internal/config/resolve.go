package config

import (
	"bytes"
	"cmp"
	"crypto"
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pgfsm/internal/secret"
)

// Bounds of a reference's value.
const (
	MaxSecretBytes = 64 << 10 // the longest value
	// MinMaskedBytes is the length of the shortest value that [Loaded.Resolve] lists as a secret to
	// mask. Masking "C" or "1" would destroy answers and hide nothing, so a reference to a shorter
	// value is refused.
	MinMaskedBytes = secret.MinBytes
)

// Resolved is a configuration with the values of its references.
type Resolved struct {
	Servers []Upstream // in the order of Content.Servers
	LLMKey  string     // the key of Content.Planner.LLM; empty if it has none
	OTLP    *OTLP      // nil: no spans are exported
	// Secrets lists the values that must never be shown, longest first: every value of a header or
	// variable, the model's key, and every value of a reference, from [MinMaskedBytes] on.
	Secrets []string
}

// Resolve resolves the references in headers (including telemetry's), env, secrets of clients and
// the model's key. Faults are an unset variable, an unreadable file, and a value that is empty or
// that a header or the environment cannot carry. The error is of type [Errors] and contains no
// value.
func (l *Loaded) Resolve(getenv func(string) (string, bool), readFile Open) (*Resolved, error) {
	r := newResolver(l.file, getenv, readFile)
	out := &Resolved{Servers: slices.Clone(l.Servers), LLMKey: r.modelKey(l)}
	for i := range out.Servers {
		s := &out.Servers[i]
		server := path{"servers", s.Name}
		s.Headers = r.resolvePairs(s.Headers, server.child("headers"))
		s.Env = r.resolvePairs(s.Env, server.child("env"))
		s.Auth = r.resolveAuth(s.Auth, server.child("auth", "client_credentials"))
	}
	if l.OTLP != nil {
		collector := *l.OTLP
		collector.Headers = r.resolvePairs(collector.Headers, path{"telemetry", "otlp", "headers"})
		out.OTLP = &collector
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	out.Secrets = slices.SortedFunc(maps.Keys(r.secrets),
		func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return out, nil
}

// ResolveHooks resolves the references in the hooks' secrets. Only a sender of messages needs them,
// so [Loaded.Resolve] does not resolve them. The errors are the same as Resolve's.
func (l *Loaded) ResolveHooks(getenv func(string) (string, bool), readFile Open) ([]Hook, error) {
	r := newResolver(l.file, getenv, readFile)
	out := slices.Clone(l.Hooks)
	for i := range out {
		out[i].Secret = r.resolveText(path{"approvals", "hooks"}.item(i).child("secret"))
	}
	return out, r.err()
}

// ResolveIdentity returns the identity providers with the references in their secrets resolved. The
// errors are the same as Resolve's.
func (l *Loaded) ResolveIdentity(getenv func(string) (string, bool), readFile Open) ([]Issuer, error) {
	r := newResolver(l.file, getenv, readFile)
	out := slices.Clone(l.Identity.Issuers)
	for i := range out {
		if out[i].Login.ConsoleSecret != "" {
			out[i].Login.ConsoleSecret = r.resolveText(path{"identity", "issuers"}.item(i).child("login",
				"console_secret"))
		}
	}
	return out, r.err()
}

// connectionKeyBytes is the length of a key of connections.keys.
const connectionKeyBytes = 32

// ResolvedConnections are the secrets of people's connections.
type ResolvedConnections struct {
	Keys    [][]byte               // they seal people's credentials
	OAuth   map[string]PersonOAuth // by server
	Secrets []string               // see [Resolved]
}

// ResolveConnections returns the secrets of people's connections; nil without connections. The errors are the same as
// Resolve's.
func (l *Loaded) ResolveConnections(getenv func(string) (string, bool), readFile Open) (*ResolvedConnections, error) {
	r := newResolver(l.file, getenv, readFile)
	list := path{"connections", "keys"}
	if l.ConnectionIdle == 0 {
		return nil, nil
	}
	out := &ResolvedConnections{OAuth: make(map[string]PersonOAuth)}
	for i := range l.file.get(list).members {
		at := list.item(i)
		text, ok := r.resolveSecret(at, "")
		key, err := base64.StdEncoding.DecodeString(text)
		if ok && (err != nil || len(key) != connectionKeyBytes) {
			r.addFault(at, "make one with openssl rand -base64 32", "%s is not %d bytes in base64", at, connectionKeyBytes)
		}
		out.Keys = append(out.Keys, key)
	}
	for _, s := range l.Servers {
		if s.Person == nil || s.Person.OAuth == nil {
			continue
		}
		o, at := *s.Person.OAuth, path{"servers", s.Name, "auth", "person", "oauth"}
		switch {
		case o.ClientSecret != "":
			o.ClientSecret, _ = r.resolveSecret(at.child("client_secret"), "")
		case r.get(at.child("private_key")) != nil:
			o.Signer, o.Alg = r.resolveKey(at, o.Alg)
		}
		out.OAuth[s.Name] = o
	}
	out.Secrets = slices.Sorted(maps.Keys(r.secrets))
	return out, r.err()
}

// remedyLines is the remedy for a value that must be one line.
const remedyLines = "keep only the value itself, in one line"

type resolver struct {
	*file    // a copy, which collects only the faults of resolving
	getenv   func(string) (string, bool)
	readFile Open
	secrets  map[string]bool
}

func newResolver(f *file, getenv func(string) (string, bool), readFile Open) *resolver {
	f = &file{name: f.name, secret: true, lines: f.lines, root: f.root}
	return &resolver{file: f, getenv: getenv, readFile: readFile, secrets: make(map[string]bool)}
}

// modelKey returns the model's key; empty if there is no model or no key.
func (r *resolver) modelKey(l *Loaded) string {
	if l.key == nil {
		r.addSecret(l.ambient)
		return l.ambient
	}
	value, ok := r.resolveSecret(l.key, remedyNoKey)
	if ok && hasControl(value, false) {
		r.addFault(l.key, remedyLines,
			"%s holds a line end or another control character when its references are read", l.key)
	}
	return value
}

func (r *resolver) resolvePairs(from Table[string], p path) Table[string] {
	out := slices.Clone(from)
	for i := range out {
		key := p.child(out[i].Name)
		value := r.resolveText(key)
		if p[len(p)-1] == "headers" && hasControl(value, false) || strings.ContainsRune(value, 0) {
			r.addFault(key, remedyLines, "%s holds a line end or another control character when its references are read", key)
		}
		out[i].Value = value
	}
	return out
}

// resolveAuth resolves the secret or the private key in a server's credentials, if it has any.
func (r *resolver) resolveAuth(c *ClientCredentials, p path) *ClientCredentials {
	if c == nil {
		return nil
	}
	out := *c
	if out.ClientSecret != "" {
		out.ClientSecret, _ = r.resolveSecret(p.child("client_secret"), "")
		return &out
	}
	out.Signer, out.Alg = r.resolveKey(p, out.Alg)
	return &out
}

// resolveKey resolves a client's private key, and returns it with its signature algorithm.
func (r *resolver) resolveKey(p path, alg string) (crypto.Signer, string) {
	key := p.child("private_key")
	text, ok := r.resolveSecret(key, "")
	if !ok {
		return nil, alg
	}

	signer, f := parsePrivateKey(text)
	if f != (fault{}) {
		r.addFault(key, f.remedy, "%s %s", key, f.problem)
		return nil, alg
	}

	// The key decides which algorithms are possible.
	algorithms := algorithmsOf(signer)
	if alg != "" && !slices.Contains(algorithms, alg) {
		r.addFault(p.child("alg"), "", "%s is %s; the private key signs with %s", p.child("alg"), alg,
			oneOf(algorithms))
	}
	return signer, cmp.Or(alg, algorithms[0])
}

// resolveSecret resolves a text, or notes a fault if the value cannot be a secret.
func (r *resolver) resolveSecret(p path, remedy string) (string, bool) {
	faults := len(r.faults)
	value := r.resolveText(p)
	if f := secretFault(value); f != (fault{}) && len(r.faults) == faults {
		r.addFault(p, cmp.Or(remedy, f.remedy), "%s %s", p, f.problem)
	}
	return value, len(r.faults) == faults
}

// resolveText resolves the references of a text. It adds the result and the value of each reference
// to the secrets.
func (r *resolver) resolveText(p path) string {
	pieces, _ := splitReferences(r.textAt(p))
	var b strings.Builder
	for _, one := range pieces {
		value := one.text
		if one.source != "" {
			value = r.resolveReference(one, p)
			r.addSecret(value)
		}
		b.WriteString(value)
	}
	r.addSecret(b.String())
	return b.String()
}

func (r *resolver) addSecret(value string) {
	if len(value) >= MinMaskedBytes {
		r.secrets[value] = true
	}
}

// resolveReference returns the value of a reference, or notes a fault.
func (r *resolver) resolveReference(reference piece, p path) string {
	what, value := "the variable "+reference.text, ""
	if reference.source == fromEnv {
		set := false
		if value, set = r.getenv(reference.text); !set {
			r.addFault(p, "export "+reference.text+", or remove the reference", "%s needs %s, which is not set", p,
				what)
			return ""
		}
	} else {
		name := r.resolvePath(reference.text)
		what = "the file " + name
		b, err := r.readFile(name)
		if err != nil {
			r.addFault(p, "correct the path, which is relative to the folder of "+filepath.Base(r.name),
				"%s needs %s, which cannot be read: %s", p, what, reasonOf(err))
			return ""
		}
		value = string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
	}

	if f := secretFault(value); f != (fault{}) {
		r.addFault(p, f.remedy, "%s needs %s, which %s", p, what, f.problem)
		return ""
	}

	return value
}

// secretFault returns the fault of a value that cannot be a secret.
func secretFault(value string) fault {
	switch n := len(value); {
	case n == 0:
		return fault{"is empty", "put the secret there, or remove the reference"}
	case n < MinMaskedBytes:
		return fault{fmt.Sprintf("has %d bytes; a secret has at least %d, or it could not be masked where a server "+
			"repeats it", n, MinMaskedBytes), "write a value that is no secret as it is, without a reference"}
	case n > MaxSecretBytes:
		return fault{fmt.Sprintf("has %d bytes; at most %d are accepted", n, MaxSecretBytes), ""}
	case !utf8.ValidString(value):
		return fault{"is not UTF-8", "write it as UTF-8"}
	}
	return fault{}
}
