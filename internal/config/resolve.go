package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pgfsm/internal/secret"
)

// Bounds of a reference's value.
const (
	MaxSecretBytes = 64 << 10 // the longest value
	// MinMaskedBytes is the shortest value that [Loaded.Resolve] names as a secret to be masked: masking "C" or "1" would destroy answers and hide nothing.
	// A reference to a shorter value is refused.
	MinMaskedBytes = secret.MinBytes
)

// Resolved is a configuration with the values of its references.
type Resolved struct {
	Servers []Upstream // in the order of Content.Servers
	LLMKey  string     // the key of Content.Planner.LLM; empty if it has none
	OTLP    *OTLP      // nil: no spans are exported
	// Secrets must never be shown, longest first: every value of a header or variable, the model's key, and every value
	// that a reference stands for, from [MinMaskedBytes] on.
	Secrets []string
}

// Resolve resolves the references in headers (also those of telemetry), env, secrets of clients and the model's key. A variable that is not set, a file
// that cannot be read, and a value that is empty or that a header or the environment cannot carry are faults; the
// error is of type [Errors] and holds no value.
func (l *Loaded) Resolve(getenv func(string) (string, bool), readFile Open) (*Resolved, error) {
	r := &resolver{getenv: getenv, readFile: readFile, secrets: make(map[string]bool)}
	r.enter(l.file)
	out := &Resolved{Servers: slices.Clone(l.Servers), LLMKey: r.key(l)}
	for i, from := range l.origins {
		r.enter(from.file)
		out.Servers[i].Headers = r.pairs(from.node, "headers", from.path)
		out.Servers[i].Env = r.pairs(from.node, "env", from.path)
		out.Servers[i].Auth = r.auth(out.Servers[i].Auth, from)
	}
	r.enter(l.file)
	out.OTLP = r.otlp(l)
	if err := r.err(); err != nil {
		return nil, err
	}
	secrets := make([]string, 0, len(r.secrets))
	for s := range r.secrets { // sorted below
		secrets = append(secrets, s)
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	out.Secrets = secrets
	return out, nil
}

type resolver struct {
	files    []*File   // already entered
	sources  []*source // of their faults
	src      *source   // of the file that is read now
	file     *File
	getenv   func(string) (string, bool)
	readFile Open
	secrets  map[string]bool
}

// enter sets the file whose references are resolved, for faults.
func (r *resolver) enter(f *File) {
	r.file = f
	if i := slices.Index(r.files, f); i >= 0 {
		r.src = r.sources[i]
		return
	}
	r.src = &source{name: f.src.name, lines: f.src.lines, known: true, hidden: f.src.hidden}
	r.files, r.sources = append(r.files, f), append(r.sources, r.src)
}

func (r *resolver) err() error {
	var all Errors
	for _, src := range r.sources {
		if err := src.err(); err != nil {
			all = append(all, err.(Errors)...)
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// key returns the key of the model, if there is a model and it has one.
func (r *resolver) key(l *Loaded) string {
	const at = "planner.llm.api_key"
	if l.key == nil {
		r.mask(l.ambient)
		return l.ambient
	}
	value := r.value(l.key, at)
	if len(r.src.faults) > 0 { // the first thing that is resolved: they are its own
		return ""
	}
	if f := unfit(value); f != (fault{}) {
		r.src.fault(l.key.at, at, remedyNoKey, "%s %s", at, f.problem)
	} else if hasControl(value, false) {
		r.src.fault(l.key.at, at, "", "%s holds a line end or another control character when its references are read", at)
	}
	return value
}

func (r *resolver) pairs(server *node, key, path string) []Pair {
	var out []Pair
	for _, m := range server.fields(key) {
		at := join(path, key) + "." + m.key
		value := r.value(m.value, at)
		if key == "headers" && hasControl(value, false) || strings.ContainsRune(value, 0) {
			r.src.fault(m.value.at, at, "", "%s holds a line end or another control character when its references are read", at)
		}
		out = append(out, Pair{m.key, value})
	}
	return out
}

// auth resolves the secret or the private key in a server's credentials, if it has any.
func (r *resolver) auth(c *ClientCredentials, server origin) *ClientCredentials {
	if c == nil {
		return nil
	}
	out, n, path := *c, server.node.get("auth").get("client_credentials"), join(server.path, "auth.client_credentials")
	if at := n.get("client_secret"); at != nil {
		out.ClientSecret, _ = r.secret(at, join(path, "client_secret"))
		return &out
	}
	at, key := n.get("private_key"), join(path, "private_key")
	text, ok := r.secret(at, key)
	if !ok {
		return &out
	}
	signer, f := parsePrivateKey(text)
	if f != (fault{}) {
		r.src.fault(at.at, key, f.remedy, "%s %s", key, f.problem)
		return &out
	}
	algorithms := algorithmsOf(signer)
	if alg := n.get("alg"); alg != nil && !slices.Contains(algorithms, alg.text) {
		r.src.fault(alg.at, join(path, "alg"), "", "%s is %s; the private key signs with %s", join(path, "alg"), alg.text, oneOf(algorithms))
	}
	out.Signer, out.Alg = signer, cmp.Or(out.Alg, algorithms[0])
	return &out
}

// secret resolves a text that is long enough to be masked, or notes a fault.
func (r *resolver) secret(n *node, at string) (string, bool) {
	before := len(r.src.faults)
	value := r.value(n, at)
	if f := unfit(value); f != (fault{}) && len(r.src.faults) == before {
		r.src.fault(n.at, at, "", "%s %s", at, f.problem)
	}
	return value, len(r.src.faults) == before
}

// value resolves the references of a text. The result and the value of each reference are secrets.
func (r *resolver) value(n *node, at string) string {
	pieces, _ := splitReferences(n.text)
	var b strings.Builder
	for _, p := range pieces {
		value := p.text
		if p.from != "" {
			value = r.lookup(p, n.at, at)
			r.mask(value)
		}
		b.WriteString(value)
	}
	r.mask(b.String())
	return b.String()
}

func (r *resolver) mask(value string) {
	if len(value) >= MinMaskedBytes {
		r.secrets[value] = true
	}
}

// lookup returns the value of a reference, or notes a fault.
func (r *resolver) lookup(p piece, at place, key string) string {
	name, value := "", ""
	if p.from == fromEnv {
		name = "the variable " + p.text
		v, set := r.getenv(p.text)
		if !set {
			r.src.fault(at, key, "export "+p.text+", or remove the reference", "%s needs %s, which is not set", key, name)
			return ""
		}
		value = v
	} else {
		path := r.file.resolve(p.text)
		name = "the file " + path
		b, err := r.readFile(path)
		if err != nil {
			r.src.fault(at, key, "", "%s needs %s, which cannot be read: %s", key, name, reason(err))
			return ""
		}
		value = string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
	}
	if f := unfit(value); f != (fault{}) {
		r.src.fault(at, key, f.remedy, "%s needs %s, which %s", key, name, f.problem)
		return ""
	}
	return value
}

// unfit says why a value cannot be a secret.
func unfit(value string) fault {
	switch n := len(value); {
	case n == 0:
		return fault{"is empty", ""}
	case n < MinMaskedBytes:
		return fault{fmt.Sprintf("has %d bytes; a secret has at least %d, or it could not be masked where a server "+
			"repeats it", n, MinMaskedBytes), "write a value that is no secret as it is, without a reference"}
	case n > MaxSecretBytes:
		return fault{fmt.Sprintf("has %d bytes; at most %d are accepted", n, MaxSecretBytes), ""}
	case !utf8.ValidString(value):
		return fault{"is not UTF-8", ""}
	}
	return fault{}
}
