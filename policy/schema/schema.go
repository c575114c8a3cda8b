package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A Schema judges documents. It is made by [Compile], immutable, and safe for concurrent use. The zero Schema refuses
// every document.
type Schema struct {
	dialect  string
	open     []string
	closed   *jsonschema.Schema // in the open world, the schema as it is
	original *jsonschema.Schema // nil if every document that closed accepts is valid
	costs    []*costs           // of closed and, if it is there, of original
	lim      Limits
}

// Dialect names the dialect of the schema: "draft-04", "draft-06", "draft-07", "2019-09" or "2020-12".
func (s *Schema) Dialect() string { return s.dialect }

// Root returns the compiled schema of the closed world, which must not be changed; nil if there is none.
func (s *Schema) Root() *jsonschema.Schema {
	if s == nil {
		return nil
	}
	return s.closed
}

// Open lists, as sorted JSON pointers into the schema, the nested objects that take any key because the schema neither names
// one nor says whether others are allowed, and the nested arrays whose items it does not describe. It is nil if there are
// none.
func (s *Schema) Open() []string { return slices.Clone(s.open) }

// Compile reads a schema from an untrusted source. The error is a [*RefusedError].
func Compile(raw []byte, lim Limits) (*Schema, error) { return compileAs(raw, lim, true) }

func compileAs(raw []byte, lim Limits, closed bool) (s *Schema, err error) {
	defer func() {
		// A panic of the validator refuses the schema and does not end the process.
		if r := recover(); r != nil {
			reason := visible(fmt.Sprintf("the validator fails on it: %v", r), maxMessage)
			s, err = nil, &RefusedError{CodeNotASchema, "", reason}
		}
	}()
	doc, dialect, notes, err := parse(raw, lim)
	if err != nil {
		return nil, err
	}
	engine := &patterns{lim: lim, known: map[string]*pattern{}}
	root, err := compile(documentURL, doc, engine.compile)
	if refused := firstRefusal(err, doc, notes); refused != nil {
		return nil, refused
	}
	engine.known = nil
	g, err := newGraph(root, root, notes)
	if err != nil {
		return nil, err
	}
	if refused := g.expansion(); refused != nil {
		return nil, refused
	}
	uniqueByKey(g.order)
	if !closed {
		s = &Schema{dialect: dialect, closed: root, costs: []*costs{g.costs()}, lim: lim}
		replacePropertyNames(g.order)
		return s, nil
	}
	c := newCloser(g, shell)
	s = &Schema{dialect: dialect, closed: c.root(), open: slices.Sorted(maps.Keys(c.open)), lim: lim}
	all, err := newGraph(s.closed, root, notes)
	if err != nil {
		return nil, err
	}
	if refused := all.expansion(); refused != nil {
		return nil, refused
	}
	s.costs = []*costs{all.costs()}
	if c.needsOriginal {
		s.original = root
		s.costs = append(s.costs, g.costs())
	}
	replacePropertyNames(g.order)
	replacePropertyNames(all.order)
	return s, nil
}

// CompileOpen reads a schema without the closed world: keys that it does not name are allowed, as in JSON Schema. It is for
// the operator's schemas, which narrow what another schema accepts. The error is a [*RefusedError].
func CompileOpen(raw []byte, lim Limits) (*Schema, error) { return compileAs(raw, lim, false) }

// nothing is a loader that loads nothing.
type nothing struct{}

var errNoLoading = errors.New("nothing outside the schema is read")

// Load implements [jsonschema.URLLoader].
func (nothing) Load(string) (any, error) { return nil, errNoLoading }

func compile(url string, doc any, engine jsonschema.RegexpEngine) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothing{})
	c.UseRegexpEngine(engine)
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// shell is the 2020-12 schema that closes whatever is put in place of its $ref: the validator tracks evaluated members
// across dialects.
var shell = func() *node {
	n, err := compile(shellURL, map[string]any{"$ref": "#/$defs/any", "$defs": map[string]any{"any": true},
		"unevaluatedProperties": false}, nil)
	if err != nil {
		panic("schema: the shell does not compile: " + err.Error())
	}
	return n
}()

// withoutBase removes the base URL of the schema, which its author never wrote.
var withoutBase = strings.NewReplacer(` in "`+documentURL+`"`, "", documentURL, "", strings.TrimSuffix(documentURL, "tool"), "")

func leadsNowhere(reference string) string {
	return "the reference " + quoted(withoutBase.Replace(reference)) + " leads to nothing in the schema"
}

// refusal gives an error of the compiler its code.
func refusal(err error) *RefusedError {
	r := &RefusedError{Code: CodeNotASchema, Reason: visible(withoutBase.Replace(err.Error()), maxMessage)}
	var (
		outside *jsonschema.LoadURLError
		pattern *jsonschema.InvalidRegexError
		pointer *jsonschema.JSONPointerNotFoundError
		badPtr  *jsonschema.InvalidJsonPointerError
		anchor  *jsonschema.AnchorNotFoundError
		invalid *jsonschema.SchemaValidationError
	)
	switch {
	case errors.As(err, &outside):
		r.Code, r.Reason = CodeReferenceOutside, quoted(withoutBase.Replace(outside.URL))+" is outside the schema, and nothing outside is read"
	case errors.As(err, &pattern):
		r.Code, r.Reason = CodePatternRefused, patternRefused(pattern.Regex, pattern.Err)
	case errors.As(err, &pointer):
		r.Code, r.Reason = CodeReferenceMissing, leadsNowhere(pointer.URL)
	case errors.As(err, &badPtr):
		r.Code, r.Reason = CodeReferenceMissing, leadsNowhere(badPtr.URL)
	case errors.As(err, &anchor):
		r.Code, r.Reason = CodeReferenceMissing, leadsNowhere(anchor.Reference)
	case errors.As(err, &invalid):
		if bad := badPattern(invalid.Err); bad != nil {
			format := bad.ErrorKind.(*kind.Format)
			r.Code, r.Reason = CodePatternRefused, patternRefused(format.Got, format.Err)
			if !errors.Is(format.Err, errAllPatterns) {
				r.Path = visible(instancePointer(bad.InstanceLocation), maxPointer)
			}
			return r
		}
		found := issuesOf(invalid.Err)
		r.Path, r.Reason = found.Issues[0].Path, "the schema's value "+found.Issues[0].Message
	}
	return r
}

// Judge reports whether doc, one strict JSON value, is what the schema allows in a closed world. The error is an
// [*InvalidError]. The caller bounds the size of doc.
func (s *Schema) Judge(doc []byte) (err error) {
	if s == nil || s.closed == nil {
		return invalid(CodeNoSchema, "", "cannot be judged: there is no schema")
	}
	defer func() {
		if r := recover(); r != nil {
			err = invalid(CodeInvalid, "", visible(fmt.Sprintf("makes the validator fail: %v", r), maxMessage))
		}
	}()
	budget := uint64(max(0, s.lim.DocWork)) + uint64(max(0, s.lim.DocWorkPerByte))*uint64(len(doc))
	v, err := decode(doc, s.lim.DocDepth, s.lim)
	if err != nil {
		return unreadable(err)
	}
	if !s.affordable(v, budget) {
		return invalid(CodeDocumentTooCostly, "", "is too deep and too large to be held against this schema")
	}
	if err := s.closed.Validate(v); err != nil {
		return issuesOf(err)
	}
	if s.original != nil {
		if err := s.original.Validate(v); err != nil {
			return issuesOf(err)
		}
	}
	return nil
}

func unreadable(err error) *InvalidError {
	code := CodeDocumentNotStrict
	switch {
	case errors.Is(err, errTooDeep):
		code = CodeDocumentTooDeep
	case errors.Is(err, errNumber):
		code = CodeDocumentNumber
	}
	return invalid(code, "", "is not JSON that can be judged: "+visible(err.Error(), maxMessage))
}
