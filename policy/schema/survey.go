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

// The compiler visits members in whatever order a map yields them and stops at the first thing that is wrong, so of two
// it names now the one and now the other. A survey goes the compiler's way through a schema, members in order of their
// names, and so always finds the same one. Where only one thing is wrong, both find that. It is made of schemas that the
// compiler refused, and of those whose identifiers could lead its references now here, now there.

// A survey is what the compiler knows of a schema while it compiles it.
type survey struct {
	doc        any
	resources  map[string]*resource // by pointer
	ids        map[string]*resource // by identifier: no two have the same
	seen       map[string]bool      // pointers of the subschemas whose identifiers are known
	queue      []string             // pointers of subschemas, in the order in which they are compiled
	queued     map[string]bool
	identified int              // identifiers and anchors that are known
	ordinary   map[string]bool  // pointers of the subschemas that are subschemas without a reference to them
	aside      map[string]bool  // pointers of those that a reference alone makes one; true: with identifiers in them
	byName     bool             // there is a reference by identifier or anchor
	late       map[string]error // what is wrong with places in meta-schemas, told when it is their turn
	patterns   *patterns
	elsewhere  *jsonschema.Compiler // of meta-schemas that a reference names
	metas      map[*edition]*node   // the meta-schemas
}

// A resource is a subschema with an identifier of its own, or the whole.
type resource struct {
	at, id  string
	edition *edition
	anchors map[string]string // pointers by name
	dynamic map[string]bool   // the names that are dynamic
}

// newSurvey begins a survey. It counts no patterns together: that one is too many is nothing that has a first.
func newSurvey(doc any, lim Limits) *survey {
	s := &survey{doc: doc, resources: map[string]*resource{}, ids: map[string]*resource{}, seen: map[string]bool{},
		aside: map[string]bool{}, queued: map[string]bool{}, late: map[string]error{}, patterns: &patterns{lim: lim},
		metas: map[*edition]*node{}}
	s.elsewhere = jsonschema.NewCompiler()
	s.elsewhere.UseLoader(nothing{})
	s.elsewhere.UseRegexpEngine(s.patterns.compile)
	return s
}

// all returns what is wrong with the schema, as the compiler says it, or nil.
func (s *survey) all() error {
	if err := s.identify(s.doc, documentURL, "", editions[defaultDialect]); err != nil {
		return err
	}
	s.ordinary = maps.Clone(s.seen)
	s.enqueue("")
	for i := 0; i < len(s.queue); i++ {
		if err := s.visit(s.queue[i]); err != nil {
			return err
		}
	}
	return nil
}

// unsettled refuses a schema in which a place that a reference alone makes a subschema has identifiers, and others may
// be led astray by them: whether the compiler knows them in time depends on what it comes to first.
func (s *survey) unsettled() *RefusedError {
	places := slices.Sorted(maps.Keys(s.aside))
	for _, at := range places {
		inside := func(other string) bool { return strings.HasPrefix(other, at+"/") }
		if s.aside[at] && (s.byName || slices.ContainsFunc(places, inside)) {
			return &RefusedError{CodeReferenceDynamic, visible(at, maxPointer),
				"where the references to it lead depends on the way to it: it has identifiers in a place that is no subschema's"}
		}
	}
	return nil
}

func (s *survey) enqueue(at string) {
	if !s.queued[at] {
		s.queued[at] = true
		s.queue = append(s.queue, at)
	}
}

// identify takes down the identifiers in the subschema v and below.
func (s *survey) identify(v any, base, at string, outer *edition) error {
	if s.seen[at] {
		return nil
	}
	s.seen[at] = true
	object, ok := v.(map[string]any)
	if !ok {
		if at == "" {
			s.add("", base, outer)
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
			return &jsonschema.ParseIDError{URL: located(at)}
		}
	}
	home := s.ids[base]
	switch {
	case id == "" && at != "":
	case home == nil:
		home = s.add(at, base, of)
	case home.at != at:
		return &jsonschema.DuplicateIDError{ID: base, URL: documentURL, Ptr1: at, Ptr2: home.at}
	}
	known := len(home.anchors)
	if err := home.nameAnchors(object, at); err != nil {
		return err
	}
	s.identified += len(home.anchors) - known
	below := of.subschemas(object, at)
	for _, pointer := range slices.Sorted(maps.Keys(below)) {
		if err := s.identify(below[pointer], base, pointer, home.edition); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) add(at, id string, of *edition) *resource {
	r := &resource{at: at, id: id, edition: of, anchors: map[string]string{}, dynamic: map[string]bool{}}
	s.resources[at], s.ids[id] = r, r
	s.identified++
	return r
}

// home is the resource in which a place lies.
func (s *survey) home(at string) *resource {
	for {
		if r, ok := s.resources[at]; ok {
			return r
		}
		slash := strings.LastIndexByte(at, '/')
		if slash < 0 {
			return s.resources[""]
		}
		at = at[:slash]
	}
}

// nameAnchors takes down the names that the subschema gives to itself.
func (r *resource) nameAnchors(object map[string]any, at string) error {
	name := func(anchor string) error {
		if other, ok := r.anchors[anchor]; ok && other != at {
			return &jsonschema.DuplicateAnchorError{Anchor: anchor, URL: documentURL, Ptr1: other, Ptr2: at}
		}
		r.anchors[anchor] = at
		return nil
	}
	if r.edition.year < 2019 {
		id, ok := object[r.edition.idName].(string)
		if _, refers := object["$ref"]; refers || !ok {
			return nil
		}
		_, fragment, err := splitURL(id)
		if err != nil {
			return &jsonschema.ParseAnchorError{URL: located(at)}
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
	if anchor, ok := object["$dynamicAnchor"].(string); ok && r.edition.year >= 2020 {
		r.dynamic[anchor] = true
		return name(anchor)
	}
	return nil
}

// visit looks at one subschema when it is its turn to be compiled.
func (s *survey) visit(at string) error {
	if err := s.late[at]; err != nil || strings.HasPrefix(at, "http") {
		return err
	}
	v, err := s.lookup(at)
	if err != nil {
		return err
	}
	if !s.seen[at] {
		home := s.home(at)
		known := s.identified
		if err := s.identify(v, home.id, at, home.edition); err != nil {
			return err
		}
		s.aside[at] = s.aside[at] || s.identified > known
		if err := s.meta(s.home(at).edition).Validate(v); err != nil {
			return &jsonschema.SchemaValidationError{URL: located(at), Err: err}
		}
	}
	home := s.home(at)
	s.enqueue(home.at)
	if home.edition.year >= 2020 && at == home.at {
		for _, anchor := range slices.Sorted(maps.Keys(home.dynamic)) {
			s.enqueue(home.anchors[anchor])
		}
	}
	if object, ok := v.(map[string]any); ok {
		return s.keywords(object, at, home)
	}
	return nil
}

func (s *survey) lookup(at string) (any, error) {
	v := s.doc
	for _, token := range strings.Split(at, "/")[1:] {
		name, ok := unescapePointer(token)
		if !ok {
			return nil, &jsonschema.InvalidJsonPointerError{URL: located(at)}
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
			return nil, &jsonschema.JSONPointerNotFoundError{URL: located(at)}
		}
	}
	return v, nil
}

// meta is the meta-schema of an edition, which judges what a reference alone makes a subschema.
func (s *survey) meta(of *edition) *node {
	if s.metas[of] == nil {
		c := jsonschema.NewCompiler()
		c.UseLoader(nothing{})
		engine := jsonschema.RegexpEngine(func(expr string) (jsonschema.Regexp, error) { return regexp.Compile(expr) })
		c.UseRegexpEngine(func(expr string) (jsonschema.Regexp, error) { return engine(expr) })
		c.AssertFormat()
		s.metas[of] = c.MustCompile(of.url)
		engine = s.patterns.compile // the limits are for the schema's expressions, not for the meta-schema's own
	}
	return s.metas[of]
}

// refer follows a reference, as far as the compiler follows it at once.
func (s *survey) refer(object map[string]any, keyword string, home *resource) error {
	text, ok := object[keyword].(string)
	if !ok {
		return nil
	}
	to, fragment, err := joinURL(home.id, text)
	if err != nil {
		return err
	}
	target := s.ids[to]
	if to == documentURL {
		target = s.resources[""]
	}
	if target == nil {
		return s.referOutside(to, fragment)
	}
	s.byName = s.byName || !strings.HasPrefix(text, "#/") && text != "#"
	if isPointer(fragment) {
		at := target.at + fragment
		if !s.ordinary[at] {
			identified := s.aside[at]
			s.aside[at] = identified // it is one of them, whoever comes to it first
		}
		s.enqueue(at)
		return nil
	}
	at, ok := target.anchors[fragment]
	if !ok {
		return &jsonschema.AnchorNotFoundError{URL: documentURL, Reference: target.id + "#" + encoded(fragment)}
	}
	s.enqueue(at)
	return nil
}

// referOutside follows a reference to a meta-schema: nothing else is outside.
func (s *survey) referOutside(to, fragment string) error {
	if !strings.HasPrefix(withoutScheme(to), metaHost) {
		return &jsonschema.LoadURLError{URL: to, Err: errNoLoading}
	}
	whole := to + "#" + encoded(fragment)
	if s.queued[whole] {
		return nil
	}
	_, err := s.elsewhere.Compile(whole)
	if err != nil && !isPointer(fragment) {
		return err
	}
	if outside, ok := err.(*jsonschema.LoadURLError); ok {
		return outside
	}
	s.late[whole] = err
	s.enqueue(whole)
	return nil
}

// located is how the compiler writes a place in the schema.
func located(at string) string { return documentURL + "#" + encoded(at) }

func encoded(fragment string) string {
	tokens := strings.Split(fragment, "/")
	for i, token := range tokens {
		tokens[i] = url.PathEscape(token)
	}
	return strings.Join(tokens, "/")
}

func isPointer(fragment string) bool { return fragment == "" || strings.HasPrefix(fragment, "/") }

// splitURL cuts the fragment off and decodes it.
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
