package settings

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what a reference may stand for.
const (
	MaxSecretBytes = 64 << 10 // the longest value
	// MinMaskedBytes is the shortest value that [Loaded.Resolve] names as a secret to be masked: masking "C" or "1"
	// would tear every answer, and hide nothing. A reference to less is refused.
	MinMaskedBytes = 8
)

// Resolve puts the values of references into headers and env. It also returns, longest first, the values that must
// never be shown: every value of a header or variable, and every value that a reference stands for, from
// [MinMaskedBytes] on. A variable that is not set, a file that cannot be read, and a value that is empty or that a
// header or the environment cannot carry are faults; the error is of type [Errors] and holds no value.
func (l *Loaded) Resolve(getenv func(string) (string, bool), readFile Open) ([]Upstream, []string, error) {
	src := &source{name: l.file.src.name, lines: l.file.src.lines, known: true, hidden: l.file.src.hidden}
	r := &resolver{src: src, file: l.file, getenv: getenv, readFile: readFile, secrets: make(map[string]bool)}
	ups := slices.Clone(l.Servers)
	for i := range ups {
		server := l.file.root.get("servers").get(ups[i].Name)
		ups[i].Headers = r.pairs(server, "headers", "servers."+ups[i].Name)
		ups[i].Env = r.pairs(server, "env", "servers."+ups[i].Name)
	}
	if err := src.err(); err != nil {
		return nil, nil, err
	}
	secrets := make([]string, 0, len(r.secrets))
	for s := range r.secrets { // sorted below
		secrets = append(secrets, s)
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return ups, secrets, nil
}

type resolver struct {
	src      *source
	file     *File
	getenv   func(string) (string, bool)
	readFile Open
	secrets  map[string]bool
}

func (r *resolver) pairs(server *node, key, path string) []Pair {
	var out []Pair
	for _, m := range server.fields(key) {
		at := join(path, key) + "." + m.key
		pieces, _ := splitReferences(m.value.text)
		var b strings.Builder
		for _, p := range pieces {
			value := p.text
			if p.from != "" {
				value = r.lookup(p, m.value.at, at)
				r.mask(value)
			}
			b.WriteString(value)
		}
		value := b.String()
		if key == "headers" && hasControl(value, false) || strings.ContainsRune(value, 0) {
			r.src.fault(m.value.at, at, "", "%s holds a line end or another control character when its references are read", at)
		}
		r.mask(value)
		out = append(out, Pair{m.key, value})
	}
	return out
}

func (r *resolver) mask(value string) {
	if len(value) >= MinMaskedBytes {
		r.secrets[value] = true
	}
}

// lookup returns what a reference stands for, or notes why there is nothing.
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
	switch {
	case value == "":
		r.src.fault(at, key, "", "%s needs %s, which is empty", key, name)
	case len(value) < MinMaskedBytes:
		r.src.fault(at, key, "write a value that is no secret as it is, without a reference",
			"%s needs %s, which has %d bytes; a secret has at least %d, or it could not be masked where a server repeats it",
			key, name, len(value), MinMaskedBytes)
	case len(value) > MaxSecretBytes:
		r.src.fault(at, key, "", "%s needs %s, which has %d bytes; at most %d are accepted",
			key, name, len(value), MaxSecretBytes)
	case !utf8.ValidString(value):
		r.src.fault(at, key, "", "%s needs %s, which is not UTF-8", key, name)
	default:
		return value
	}
	return ""
}
