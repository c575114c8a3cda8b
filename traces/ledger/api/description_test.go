package api_test

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/traces/ledger/api"
)

// copied is where people find the document.
const copied = "../../../docs/reference/openapi.yaml"

// A description is the OpenAPI document, read for comparing.
type description struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
}

var described = sync.OnceValues(func() (*description, error) {
	var from any
	if err := yaml.Unmarshal(api.Description, &from); err != nil {
		return nil, err
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &description{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: make(map[string]*jsonschema.Schema)}
	return d, d.compiler.AddResource("openapi.json", doc)
})

// at returns what stands at a JSON pointer, behind references.
func (d *description) at(pointer string) (any, string, bool) {
	var v any = d.doc
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "#/"), "/") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, pointer, false
		}
		if v, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !ok {
			return nil, pointer, false
		}
	}
	if m, ok := v.(map[string]any); ok {
		if ref, ok := m["$ref"].(string); ok {
			return d.at(ref)
		}
	}
	return v, pointer, true
}

func (d *description) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile("openapi.json" + pointer)
	d.schemas[pointer] = s
	return s, err
}

var anyRun = regexp.MustCompile(`^(/(?:status|steps|what-if|inclusion|approve|deny)/)[0-9a-f-]{36}$`)

// check says what in a reply is not as the document says.
func (d *description) check(method, path string, r reply) error {
	path = anyRun.ReplaceAllString(path, "${1}{run}")
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace
	operation := "#/paths/" + escaped(path)
	if _, _, ok := d.at(operation); !ok {
		if r.status == http.StatusNotFound || r.status == http.StatusMisdirectedRequest {
			return nil // there is nothing there, as the document says
		}
		return fmt.Errorf("%s is not described", path)
	}
	switch _, _, ok := d.at(operation + "/" + strings.ToLower(method)); {
	case ok:
		operation += "/" + strings.ToLower(method)
	case r.status == http.StatusMethodNotAllowed || method == http.MethodHead:
		for _, m := range []string{"get", "post"} {
			if _, _, ok := d.at(operation + "/" + m); ok {
				operation += "/" + m
				break
			}
		}
	default:
		return fmt.Errorf("%s %s is not described", method, path)
	}
	_, response, ok := d.at(fmt.Sprintf("%s/responses/%d", operation, r.status))
	if !ok {
		return fmt.Errorf("%s %s: status %d is not described", method, path, r.status)
	}
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil {
		return err
	}
	body := response + "/content/" + escaped(kind) + "/schema"
	if _, _, ok := d.at(body); !ok {
		return fmt.Errorf("%s %s: %d as %s is not described", method, path, r.status, kind)
	}
	if method == http.MethodHead || !strings.HasSuffix(kind, "json") {
		return nil
	}
	s, err := d.schema(body)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

func holdToDescription(t testing.TB, method, path string, r reply) {
	t.Helper()
	d, err := described()
	if err == nil {
		err = d.check(method, path, r)
	}
	if err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, r.body)
	}
}

// TestDescriptionCodes holds the document's list of codes to the handler's.
func TestDescriptionCodes(t *testing.T) {
	d, err := described()
	check.NoError(t, err)
	listed, _, ok := d.at("#/components/schemas/Problem/properties/code/enum")
	if !ok {
		t.Fatal("the document lists no codes")
	}
	var got []string
	for _, v := range listed.([]any) {
		got = append(got, v.(string))
	}
	slices.Sort(got)
	if want := api.Codes(); !slices.Equal(got, want) {
		t.Errorf("the document lists %q, the handler has %q", got, want)
	}
}

// TestDescriptionRoutes holds the document's paths to the handler's routes: what is described is there, and what is there
// is described.
func TestDescriptionRoutes(t *testing.T) {
	d, err := described()
	check.NoError(t, err)
	var got []string
	for path, methods := range d.doc["paths"].(map[string]any) { // sorted below
		for method := range methods.(map[string]any) {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(got)
	if want := api.Routes(); !slices.Equal(got, want) {
		t.Errorf("the document describes %q, the handler has %q", got, want)
	}
}

// TestDescriptionIsServed holds what is served, and what people find in docs, to the document.
func TestDescriptionIsServed(t *testing.T) {
	d := newFixture(t)
	if got := d.call(http.MethodGet, "/openapi.yaml", "", ""); got.body != string(api.Description) {
		t.Error("/openapi.yaml is not the document")
	}
	golden.File(t, copied, api.Description)
}
