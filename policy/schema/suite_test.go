package schema

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
)

const (
	suiteArchive = "testdata/suite.zip"
	suiteGolden  = "testdata/suite-refused.golden"
)

// suiteDrafts are the folders of the suite, each with the meta-schema of its cases and the number of cases that the
// archive is known to hold: an archive that lost some would pass otherwise.
var suiteDrafts = []struct {
	dir, schema string
	draft       *jsonschema.Draft
	cases       int
}{
	{"draft4", "http://json-schema.org/draft-04/schema#", jsonschema.Draft4, 610},
	{"draft6", "http://json-schema.org/draft-06/schema#", jsonschema.Draft6, 822},
	{"draft7", "http://json-schema.org/draft-07/schema#", jsonschema.Draft7, 906},
	{"draft2019-09", "https://json-schema.org/draft/2019-09/schema", jsonschema.Draft2019, 1220},
	{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", jsonschema.Draft2020, 1245},
}

type suiteGroup struct {
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"schema"`
	Tests       []struct {
		Description string         `json:"description"`
		Data        jsontext.Value `json:"data"`
		Valid       bool           `json:"valid"`
	} `json:"tests"`
}

// suite reads the archive: the files of each draft, in order, and their groups.
func suite(t *testing.T) (files map[string][]string, groups map[string][]suiteGroup) {
	t.Helper()
	archive, err := zip.OpenReader(suiteArchive)
	check.NoError(t, err)
	defer archive.Close()
	files, groups = map[string][]string{}, map[string][]suiteGroup{}
	for _, f := range archive.File {
		r, err := f.Open()
		check.NoError(t, err)
		text, err := io.ReadAll(r)
		check.NoError(t, err)
		if !strings.HasPrefix(f.Name, "tests/") {
			continue
		}
		var all []suiteGroup
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		draft, name := path.Base(path.Dir(f.Name)), strings.TrimSuffix(path.Base(f.Name), ".json")
		files[draft] = append(files[draft], name)
		groups[draft+"/"+name] = all
	}
	return files, groups
}

// bare is the validator without the gate; it loads nothing.
func bare(schema []byte, draft *jsonschema.Draft) (func([]byte) error, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(jsonschema.SchemeURLLoader{})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const url = "http://testsuites.invalid/schema.json"
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	return func(data []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return compiled.Validate(v)
	}, nil
}

// TestSuiteGate runs the suite against the gate: it never accepts what the suite calls invalid, and what it refuses
// beyond is listed by reason in a golden file.
func TestSuiteGate(t *testing.T) {
	files, groups := suite(t)
	refused := map[string][]string{}
	accepted, invalid := 0, 0
	for _, d := range suiteDrafts {
		cases := 0
		for _, file := range files[d.dir] {
			for _, group := range groups[d.dir+"/"+file] {
				name := d.dir + "/" + file + ": " + group.Description
				cases += len(group.Tests)
				schema, err := Compile(declared(group.Schema, d.schema), DefaultLimits())
				var because *RefusedError
				if errors.As(err, &because) {
					refused[because.Code] = append(refused[because.Code], name)
					continue
				}
				for _, test := range group.Tests {
					err := schema.Judge(test.Data)
					var because *InvalidError
					switch {
					case err == nil && !test.Valid:
						t.Errorf("%s: %s: Judge(%s) = nil, the suite calls it invalid", name, test.Description, test.Data)
					case err == nil:
						accepted++
					case !test.Valid:
						invalid++
					case errors.As(err, &because):
						reason := because.Code
						if reason == CodeInvalid {
							reason = "closed world"
						}
						refused[reason] = append(refused[reason], name+": "+test.Description)
					}
				}
			}
		}
		if cases != d.cases {
			t.Errorf("%s: the archive holds %d cases, want %d", d.dir, cases, d.cases)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "accepted as the suite says: %d\nrefused as the suite says: %d\n", accepted, invalid)
	reasons := make([]string, 0, len(refused))
	for reason := range refused {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(&b, "\n%s: %d\n", reason, len(refused[reason]))
		for _, name := range refused[reason] {
			fmt.Fprintf(&b, "  %s\n", name)
		}
	}
	golden.File(t, suiteGolden, b.String())
}

// declared adds $schema to a schema that has none.
func declared(schema jsontext.Value, dialect string) []byte {
	var doc map[string]jsontext.Value
	if schema.Kind() != '{' || json.Unmarshal(schema, &doc) != nil || doc["$schema"] != nil {
		return schema
	}
	members := bytes.TrimPrefix(bytes.TrimSpace(schema), []byte("{"))
	if len(doc) > 0 {
		members = append([]byte(","), members...)
	}
	return append([]byte(`{"$schema":"`+dialect+`"`), members...)
}
