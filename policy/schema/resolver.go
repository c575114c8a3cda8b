package schema

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The compiler visits members in the order of a Go map and stops at the first error, so of two errors it reports either. A
// resolver walks a schema as the compiler does, but visits members in the order of their names: it always finds the same
// error. If a schema has only one error, both find that one. Schemas that the compiler refused are resolved, and those whose
// identifiers could send references to different places.

// A resolver holds what is known of a schema while its references are resolved.
type resolver struct {
	doc            any
	resources      map[string]*resource // by pointer
	ids            map[string]*resource // by identifier: no two have the same
	seen           map[string]bool      // pointers of the subschemas whose identifiers are known
	queue          []string             // pointers of subschemas, in the order in which they are compiled
	queued         map[string]bool
	identified     int              // how many identifiers and anchors are known
	byKeyword      map[string]bool  // pointers of the places that a keyword makes subschemas
	onlyReferenced map[string]bool  // pointers of the places that only a reference makes subschemas; true: with identifiers
	byName         bool             // there is a reference by identifier or anchor
	metaErrors     map[string]error // errors of references to meta-schemas, returned when they are visited
	patterns       *patterns
	metaCompiler   *jsonschema.Compiler // of meta-schemas that a reference names
	metas          map[*draft]*node     // the meta-schemas
}

// A resource is the whole document, or a subschema with an identifier of its own.
type resource struct {
	at, id  string
	draft   *draft
	anchors map[string]string // pointers by name
	dynamic map[string]bool   // the names that are dynamic
}

// newResolver returns a resolver of a document. It does not bound all patterns together: no single pattern is the one too many.
func newResolver(doc any, lim Limits) *resolver {
	r := &resolver{doc: doc, resources: map[string]*resource{}, ids: map[string]*resource{}, seen: map[string]bool{},
		onlyReferenced: map[string]bool{}, queued: map[string]bool{}, metaErrors: map[string]error{}, patterns: &patterns{lim: lim},
		metas: map[*draft]*node{}}
	r.metaCompiler = jsonschema.NewCompiler()
	r.metaCompiler.UseLoader(nothing{})
	r.metaCompiler.UseRegexpEngine(r.patterns.compile)
	return r
}

// resolve returns the first error in the schema, as the compiler reports it, or nil.
func (r *resolver) resolve() error {
	if err := r.identify(r.doc, documentURL, "", drafts[defaultDialect]); err != nil {
		return err
	}
	r.byKeyword = maps.Clone(r.seen)
	r.enqueue("")
	for i := 0; i < len(r.queue); i++ {
		if err := r.visit(r.queue[i]); err != nil {
			return err
		}
	}
	return nil
}

// ambiguous refuses a schema in which a place that only a reference makes a subschema has identifiers to which other references
// may lead: whether the compiler knows them in time depends on what it visits first.
func (r *resolver) ambiguous() *RefusedError {
	places := slices.Sorted(maps.Keys(r.onlyReferenced))
	for _, at := range places {
		inside := func(other string) bool { return strings.HasPrefix(other, at+"/") }
		if r.onlyReferenced[at] && (r.byName || slices.ContainsFunc(places, inside)) {
			return &RefusedError{CodeReferenceDynamic, visible(at, maxPointer),
				"where the references to it lead depends on the way to it: it has identifiers in a place that is no subschema's"}
		}
	}
	return nil
}

func (r *resolver) enqueue(at string) {
	if !r.queued[at] {
		r.queued[at] = true
		r.queue = append(r.queue, at)
	}
}

// identify records the identifiers in the subschema v and below.
func (r *resolver) identify(v any, base, at string, outer *draft) error {
	if r.seen[at] {
		return nil
	}
	r.seen[at] = true
	object, ok := v.(map[string]any)
	if !ok {
		if at == "" {
			r.add("", base, outer)
		}
		return nil
	}
	of, err := outer.declared(object, at)
	if err != nil {
		return err
	}
	id := of.id(object)
	if id == "" && at != "" {
		of = outer
		id = of.id(object)
	}
	if id != "" {
		if base, _, err = joinURL(base, id); err != nil {
			return &jsonschema.ParseIDError{URL: locationOf(at)}
		}
	}
	home := r.ids[base]
	switch {
	case id == "" && at != "":
	case home == nil:
		home = r.add(at, base, of)
	case home.at != at:
		return &jsonschema.DuplicateIDError{ID: base, URL: documentURL, Ptr1: at, Ptr2: home.at}
	}
	known := len(home.anchors)
	if err := home.nameAnchors(object, at); err != nil {
		return err
	}
	r.identified += len(home.anchors) - known
	below := of.subschemas(object, at)
	for _, pointer := range slices.Sorted(maps.Keys(below)) {
		if err := r.identify(below[pointer], base, pointer, home.draft); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) add(at, id string, of *draft) *resource {
	added := &resource{at: at, id: id, draft: of, anchors: map[string]string{}, dynamic: map[string]bool{}}
	r.resources[at], r.ids[id] = added, added
	r.identified++
	return added
}

// resourceAt returns the resource that a place lies in.
func (r *resolver) resourceAt(at string) *resource {
	for {
		if found, ok := r.resources[at]; ok {
			return found
		}
		slash := strings.LastIndexByte(at, '/')
		if slash < 0 {
			return r.resources[""]
		}
		at = at[:slash]
	}
}

// nameAnchors records the anchors of a subschema.
func (r *resource) nameAnchors(object map[string]any, at string) error {
	name := func(anchor string) error {
		if other, ok := r.anchors[anchor]; ok && other != at {
			return &jsonschema.DuplicateAnchorError{Anchor: anchor, URL: documentURL, Ptr1: other, Ptr2: at}
		}
		r.anchors[anchor] = at
		return nil
	}
	if r.draft.year < 2019 {
		id, ok := object[r.draft.idName].(string)
		if _, refers := object["$ref"]; refers || !ok {
			return nil
		}
		_, fragment, err := splitURL(id)
		if err != nil {
			return &jsonschema.ParseAnchorError{URL: locationOf(at)}
		}
		if isPointer(fragment) {
			return nil
		}
		return name(fragment)
	}
	if anchor, ok := object["$anchor"].(string); ok {
		if err := name(anchor); err != nil {
			return err
		}
	}
	if anchor, ok := object["$dynamicAnchor"].(string); ok && r.draft.year >= 2020 {
		r.dynamic[anchor] = true
		return name(anchor)
	}
	return nil
}

// visit resolves the references of one subschema.
func (r *resolver) visit(at string) error {
	if err := r.metaErrors[at]; err != nil || strings.HasPrefix(at, "http") {
		return err
	}
	v, err := r.lookup(at)
	if err != nil {
		return err
	}
	if !r.seen[at] {
		home := r.resourceAt(at)
		known := r.identified
		if err := r.identify(v, home.id, at, home.draft); err != nil {
			return err
		}
		r.onlyReferenced[at] = r.onlyReferenced[at] || r.identified > known
		if err := r.meta(r.resourceAt(at).draft).Validate(v); err != nil {
			return &jsonschema.SchemaValidationError{URL: locationOf(at), Err: err}
		}
	}
	home := r.resourceAt(at)
	r.enqueue(home.at)
	if home.draft.year >= 2020 && at == home.at {
		for _, anchor := range slices.Sorted(maps.Keys(home.dynamic)) {
			r.enqueue(home.anchors[anchor])
		}
	}
	if object, ok := v.(map[string]any); ok {
		return r.keywords(object, at, home)
	}
	return nil
}

func (r *resolver) lookup(at string) (any, error) {
	v := r.doc
	for _, token := range strings.Split(at, "/")[1:] {
		name, ok := unescapePointer(token)
		if !ok {
			return nil, &jsonschema.InvalidJsonPointerError{URL: locationOf(at)}
		}
		found := false
		switch in := v.(type) {
		case map[string]any:
			v, found = in[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
				v, found = in[i], true
			}
		}
		if !found {
			return nil, &jsonschema.JSONPointerNotFoundError{URL: locationOf(at)}
		}
	}
	return v, nil
}

// meta returns the meta-schema of a draft. It validates what only a reference makes a subschema.
func (r *resolver) meta(of *draft) *node {
	if r.metas[of] == nil {
		c := jsonschema.NewCompiler()
		c.UseLoader(nothing{})
		engine := jsonschema.RegexpEngine(func(expr string) (jsonschema.Regexp, error) { return regexp.Compile(expr) })
		c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return engine(expr) })
		c.AssertFormat()
		r.metas[of] = c.MustCompile(of.url)
		engine = r.patterns.compile // the limits are for the schema's expressions, not for the meta-schema's own
	}
	return r.metas[of]
}

// refer resolves one reference and enqueues its target.
func (r *resolver) refer(object map[string]any, keyword string, home *resource) error {
	text, ok := object[keyword].(string)
	if !ok {
		return nil
	}
	to, fragment, err := joinURL(home.id, text)
	if err != nil {
		return err
	}
	target := r.ids[to]
	if to == documentURL {
		target = r.resources[""]
	}
	if target == nil {
		return r.referOutside(to, fragment)
	}
	r.byName = r.byName || !strings.HasPrefix(text, "#/") && text != "#"
	if isPointer(fragment) {
		at := target.at + fragment
		if !r.byKeyword[at] {
			identified := r.onlyReferenced[at]
			r.onlyReferenced[at] = identified // also if a keyword leads to it later
		}
		r.enqueue(at)
		return nil
	}
	at, ok := target.anchors[fragment]
	if !ok {
		return &jsonschema.AnchorNotFoundError{URL: documentURL, Reference: target.id + "#" + encoded(fragment)}
	}
	r.enqueue(at)
	return nil
}

// referOutside resolves a reference to a meta-schema. Every other reference out of the document is an error.
func (r *resolver) referOutside(to, fragment string) error {
	if !strings.HasPrefix(withoutScheme(to), metaHost) {
		return &jsonschema.LoadURLError{URL: to, Err: errNoLoading}
	}
	whole := to + "#" + encoded(fragment)
	if r.queued[whole] {
		return nil
	}
	_, err := r.metaCompiler.Compile(whole)
	if err != nil && !isPointer(fragment) {
		return err
	}
	if outside, ok := err.(*jsonschema.LoadURLError); ok {
		return outside
	}
	r.metaErrors[whole] = err
	r.enqueue(whole)
	return nil
}

// locationOf writes a place in the schema as the compiler does.
func locationOf(at string) string { return documentURL + "#" + encoded(at) }

func encoded(fragment string) string {
	tokens := strings.Split(fragment, "/")
	for i, token := range tokens {
		tokens[i] = url.PathEscape(token)
	}
	return strings.Join(tokens, "/")
}

func isPointer(fragment string) bool { return fragment == "" || strings.HasPrefix(fragment, "/") }

// splitURL returns a URL without its fragment, and the decoded fragment.
func splitURL(s string) (before, fragment string, err error) {
	before, fragment, _ = strings.Cut(s, "#")
	if fragment, err = url.PathUnescape(fragment); err != nil {
		return "", "", &jsonschema.ParseURLError{URL: s, Err: err}
	}
	return before, fragment, nil
}

// joinURL resolves a reference against a base.
func joinURL(base, ref string) (to, fragment string, err error) {
	from, err := url.Parse(base)
	if err != nil {
		return "", "", &jsonschema.ParseURLError{URL: base, Err: err}
	}
	ref, fragment, err = splitURL(ref)
	if err != nil {
		return "", "", err
	}
	relative, err := url.Parse(ref)
	if err != nil {
		return "", "", &jsonschema.ParseURLError{URL: ref, Err: err}
	}
	joined := from.ResolveReference(relative)
	if !relative.IsAbs() && from.Opaque != "" {
		joined.Opaque = from.Opaque // net/url leaves it out
	}
	return joined.String(), fragment, nil
}

// unescapePointer undoes escapePointer; it reports false for a ~ that stands for nothing.
func unescapePointer(token string) (string, bool) {
	if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
		return "", false
	}
	return strings.NewReplacer("~0", "~", "~1", "/").Replace(token), true
}
