package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/internal/canonical"
)

// A Schema judges documents. It is made by [Compile], immutable, and safe for concurrent use. The
// zero Schema refuses every document.
type Schema struct {
	dialect  string
	open     []string
	closed   *jsonschema.Schema // in the open world, the schema as it is
	original *jsonschema.Schema // nil if every document that closed accepts is valid
	costs    []*costs           // the costs of closed and, if it is there, of original
	lim      Limits
}

// Dialect names the dialect of the schema: "draft-04", "draft-06", "draft-07", "2019-09" or
// "2020-12".
func (s *Schema) Dialect() string { return s.dialect }

// Root returns the compiled schema of the closed world, which must not be changed; nil if there is
// none.
func (s *Schema) Root() *jsonschema.Schema {
	if s == nil {
		return nil
	}
	return s.closed
}

// Open lists, as sorted JSON pointers into the schema, the nested objects that take any key because
// the schema neither names one nor says whether others are allowed, and the nested arrays whose
// items it does not describe. It is nil if there are none.
func (s *Schema) Open() []string { return slices.Clone(s.open) }

// Compile reads a schema from an untrusted source. The error is a [*RefusedError].
func Compile(raw []byte, lim Limits) (*Schema, error) { return compileAs(raw, lim, true) }

func compileAs(raw []byte, lim Limits, closed bool) (s *Schema, err error) {
	defer func() {
		// A panic of the validator refuses the schema and does not end the process.
		if r := recover(); r != nil {
			reason := clipVisible(fmt.Sprintf("the validator fails on it: %v", r), maxMessage)
			s, err = nil, &RefusedError{CodeNotASchema, "", reason}
		}
	}()

	doc, dialect, err := parse(raw, lim)
	if err != nil {
		return nil, err
	}

	// The compiler reads the schema within the bounds of the guard.
	engine := &patterns{lim: lim, known: map[string]*pattern{}}
	root, err := compileDocument(documentURL, doc, engine.compile)
	if err != nil {
		return nil, explainRefusal(err, doc, lim)
	}

	engine.known = nil
	g, err := newGraph(root, lim)
	if err != nil {
		return nil, err
	}
	if refused := g.checkExpansion(); refused != nil {
		return nil, refused
	}

	uniqueByKey(g.order)
	if !closed {
		return &Schema{
			dialect: dialect,
			closed:  root,
			costs:   []*costs{g.computeCosts()},
			lim:     lim,
		}, nil
	}

	c := newCloser(g, shell)
	s = &Schema{
		dialect: dialect,
		closed:  c.closedRoot(),
		open:    slices.Sorted(maps.Keys(c.open)),
		lim:     lim,
	}

	// The copy is a graph of its own, with other in-place parts and costs.
	closedGraph, err := newGraph(s.closed, lim)
	if err != nil {
		return nil, err
	}
	if refused := closedGraph.checkExpansion(); refused != nil {
		return nil, refused
	}

	s.costs = []*costs{closedGraph.computeCosts()}
	if c.needsOriginal {
		s.original = root
		s.costs = append(s.costs, g.computeCosts())
	}

	return s, nil
}

// CompileOpen reads a schema without the closed world: keys that it does not name are allowed, as
// in JSON Schema. It is for the operator's schemas, which narrow what another schema accepts. The
// error is a [*RefusedError].
func CompileOpen(raw []byte, lim Limits) (*Schema, error) { return compileAs(raw, lim, false) }

func compileDocument(url string, doc any, engine jsonschema.RegexpEngine) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing outside the schema is read
	c.UseRegexpEngine(engine)
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// shell is the 2020-12 schema that closes whatever is put in place of its $ref: the validator
// tracks evaluated members across dialects.
var shell = func() *node {
	n, err := compileDocument(shellURL, map[string]any{"$ref": "#/$defs/any", "$defs": map[string]any{"any": true},
		"unevaluatedProperties": false}, nil)
	if err != nil {
		panic("schema: the shell does not compile: " + err.Error())
	}
	return n
}()

// Judge reports whether the schema allows doc, one strict JSON value, in a closed world. The error
// is an [*InvalidError]. The caller bounds the size of doc.
func (s *Schema) Judge(doc []byte) (err error) {
	if s == nil || s.closed == nil {
		return newInvalidError(CodeNoSchema, "", "cannot be judged: there is no schema")
	}
	defer func() {
		if r := recover(); r != nil {
			err = newInvalidError(CodeInvalid, "",
				clipVisible(fmt.Sprintf("makes the validator fail: %v", r), maxMessage))
		}
	}()

	// Larger documents may cost more, in proportion to their bytes.
	budget := uint64(max(0, s.lim.DocWork)) + uint64(max(0, s.lim.DocWorkPerByte))*uint64(len(doc))
	v, err := decodeValue(doc, s.lim.DocDepth, s.lim)
	if err != nil {
		return unreadableError(err)
	}
	if !s.isAffordable(v, budget) {
		return newInvalidError(CodeDocumentTooCostly, "", "is too deep and too large to be held against this schema")
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

func unreadableError(err error) *InvalidError {
	code := CodeDocumentNotStrict
	switch {
	case errors.Is(err, canonical.ErrTooDeep):
		code = CodeDocumentTooDeep
	case errors.Is(err, errNumber):
		code = CodeDocumentNumber
	}
	return newInvalidError(code, "", "is not JSON that can be judged: "+clipVisible(err.Error(), maxMessage))
}
