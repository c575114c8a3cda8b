package config

import (
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/xeipuuv/gojsonschema"
)

// The schemas are JSON Schema, draft 7. In addition, they have x-minimum and x-maximum, the bounds
// of durations. format names a check of [formats], title is the noun for a text or for the entries
// of a list or table, and writeOnly marks secrets.
//
//go:embed *.schema.json
var schemaFiles embed.FS

// SchemaNames returns the kinds of files that have a schema.
func SchemaNames() []string {
	return []string{"pgfsm", "policy", "risk", "grant", "tests", "claims", "labels", "allowlist"}
}

// Schema returns the JSON Schema of a kind of file, for editors: this package refuses whatever the
// schema refuses. It returns nil for an unknown kind.
func Schema(name string) []byte {
	text, err := schemaFiles.ReadFile(name + ".schema.json")
	if err != nil {
		return nil
	}
	return text
}

// fileSchema is a JSON Schema, or a part of one.
type fileSchema struct {
	*node
	root      *node
	validator *gojsonschema.Schema
}

// The schemas of the files, and of parts that are judged separately.
var (
	configSchema    = loadSchema("pgfsm", "")
	serverSchema    = loadSchema("pgfsm", "server")
	allowlistSchema = loadSchema("allowlist", "")
	policySchema    = loadSchema("policy", "")
	riskSchema      = loadSchema("risk", "")
	grantSchema     = loadSchema("grant", "")
	testsSchema     = loadSchema("tests", "")
	actorSchema     = loadSchema("tests", "actor")
	claimsSchema    = loadSchema("claims", "")
	labelsSchema    = loadSchema("labels", "")
)

// loadSchema reads a schema, or one of its definitions. The schemas are embedded: any error is a
// mistake in them, which every test shows.
func loadSchema(name, definition string) func() *fileSchema {
	return sync.OnceValue(func() *fileSchema {
		f := &file{name: name}
		s := &fileSchema{root: f.readJSON(Schema(name))}
		s.node = s.root
		source := s.root
		if definition != "" {
			s.node = s.root.get("definitions").get(definition)
			ref := &node{kind: isText, text: "#/definitions/" + definition}
			source = &node{kind: isMap, members: []member{{key: "$ref", value: ref}, *s.root.member("definitions")}}
		}
		loader := gojsonschema.NewSchemaLoader()
		loader.Draft, loader.AutoDetect = gojsonschema.Draft7, false
		var err error
		if s.validator, err = loader.Compile(gojsonschema.NewBytesLoader(source.json())); err != nil {
			panic("config: the schema " + name + " cannot be used: " + err.Error())
		}
		return s
	})
}

// subschema returns a part of the schema.
func (s *fileSchema) subschema(n *node) *fileSchema {
	if ref, ok := strings.CutPrefix(n.textOf("$ref"), "#/definitions/"); ok {
		n = s.root.get("definitions").get(ref)
	}
	return &fileSchema{node: n, root: s.root}
}

// memberSchema returns the schema of a member; nil if the member is not allowed. open is true if
// any value is allowed.
func (s *fileSchema) memberSchema(parent kind, key string) (sub *fileSchema, open bool) {
	n := s.get("items")
	if parent == isMap {
		if n = s.get("properties").get(key); n == nil {
			n = s.get("additionalProperties")
		}
	}
	switch {
	case n == nil:
		return s.subschema(&node{}), true
	case n.kind == isBool:
		return nil, false
	}
	return s.subschema(n), false
}

// intOf returns the value of a keyword; 0 if the schema does not have it.
func (s *fileSchema) intOf(keyword string) int64 {
	n, err := strconv.ParseInt(s.textOf(keyword), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s *fileSchema) textsOf(keyword string) (out []string) {
	for _, m := range s.membersOf(keyword) {
		out = append(out, m.value.text)
	}
	return out
}

// typeNames returns the types that a value may have.
func (s *fileSchema) typeNames() []string {
	if one := s.textOf("type"); one != "" {
		return []string{one}
	}
	return s.textsOf("type")
}

// judgeNode checks a value against a schema, notes the faults, fills in the defaults, and converts
// durations to milliseconds.
func (f *file) judgeNode(n *node, s *fileSchema, at path) {
	if n == nil {
		return
	}
	j := &judge{file: f, reported: make(map[string]bool)}
	result, err := s.validator.Validate(gojsonschema.NewBytesLoader(n.json()))
	if err != nil {
		f.addFaultAt(n.at, at.String(), "", "%s cannot be judged: %s", subjectOf(at), err)
		return
	}
	for _, e := range result.Errors() {
		j.reportError(e, n, s, at)
	}
	if !result.Valid() && len(j.reported) == 0 {
		j.addFault(n.at, at, "", "%s does not conform to its schema", subjectOf(at))
	}
	j.completeNode(n, s, at, false)
}

type judge struct {
	file     *file
	reported map[string]bool // key: the path
}

// delimiter separates the parts of an error's path. For a key that contains it, only the part
// before it is found.
const delimiter = "\x00"

// reportError notes an error of the validator.
func (j *judge) reportError(e gojsonschema.ResultError, n *node, s *fileSchema, p path) {
	// Walk down to the value that the error is about, and to its schema.
	m, above, parent := member{value: n, at: n.at}, s, n
	for _, name := range strings.Split(e.Context().String(delimiter), delimiter)[1:] {
		next := m.value.child(name)
		if next == nil {
			return
		}
		if m.value.kind == isList {
			name = "[" + name + "]"
		}
		above, parent = s, m.value
		s, _ = s.memberSchema(m.value.kind, name)
		m, p = *next, p.child(name)
	}

	key, _ := e.Details()["property"].(string)
	n = m.value

	switch e.Type() {
	case "required":
		j.addFault(n.at, p.child(key), s.keyRemedy(key), "%s has no %s", subjectOf(p), key)
	case "number_any_of":
		var names []string
		for _, one := range s.membersOf("anyOf") {
			name := one.value.membersOf("required")[0].value.text
			names = append(names, name)
			j.reported[p.child(name).String()] = true
		}
		j.addFault(n.at, p, "write one of them", "%s has none of %s", subjectOf(p), strings.Join(names, ", "))
	case "false":
		j.addFault(m.at, p, "remove one of them", "%s does not go with %s", p, above.dependentKey(parent, m.key, true))
	case "missing_dependency":
		needed := e.Details()["dependency"].(string)
		dependent := s.dependentKey(n, needed, false)
		j.addFault(n.member(dependent).at, p.child(dependent), s.keyRemedy(needed), "%s does not go without %s",
			p.child(dependent), needed)
	case "additional_property_not_allowed":
		keys := s.knownKeys()
		j.addFault(n.member(key).at, p.child(key), nearestOr(key, keys, "known here: "+strings.Join(keys, ", ")),
			"unknown key %s in %s", quote(key), subjectOf(p))
	case "invalid_property_name":
		found := s.subschema(s.get("propertyNames")).textFault(key, true)
		j.addFault(n.member(key).at, p.child(key), found.remedy, "%s name %s %s", s.textOf("title"), quote(key),
			found.problem)
	default:
		found := s.valueFault(e, n)
		if found == (fault{}) {
			return // the fault is in a part that has its own error
		}
		position := n.at
		if i, ok := e.Details()["j"].(int); ok { // the second of two equal items
			position = n.members[i].at
		}
		j.addFault(position, p, found.remedy, "%s %s", subjectOf(p), found.problem)
	}
}

// dependentKey returns the key of an object that depends on another key or, if absent is true, on
// its absence.
func (s *fileSchema) dependentKey(n *node, key string, absent bool) string {
	for _, d := range s.membersOf("dependencies") {
		about := absent && d.value.get("properties").member(key) != nil
		for _, m := range d.value.members {
			about = about || !absent && m.value.text == key
		}
		if about && n.member(d.key) != nil {
			return d.key
		}
	}
	return ""
}

// keyRemedy says how to write a key; it is empty if the schema has no example.
func (s *fileSchema) keyRemedy(key string) string {
	examples := s.get("properties").get(key).membersOf("examples")
	if len(examples) == 0 {
		return ""
	}
	return "write " + key + ": " + examples[0].value.exampleText()
}

// exampleRemedy says how to write a value: by an example, as JSON, or by the keys of an object. It
// is empty if the schema has neither.
func (s *fileSchema) exampleRemedy() string {
	if examples := s.membersOf("examples"); len(examples) > 0 {
		return "write one like " + examples[0].value.spacedJSON()
	}
	if keys := s.knownKeys(); len(keys) > 0 {
		return "write one of " + strings.Join(keys, ", ")
	}
	return ""
}

// addFault notes a fault, unless the path already has one.
func (j *judge) addFault(at place, p path, remedy, problem string, args ...any) {
	if where := p.String(); !j.reported[where] {
		j.reported[where] = true
		j.file.addFaultAt(at, where, remedy, problem, args...)
	}
}

// valueFault returns the fault of a single value.
func (s *fileSchema) valueFault(e gojsonschema.ResultError, n *node) fault {
	switch e.Type() {
	case "invalid_type":
		return s.typeFault(n)
	case "number_gte", "number_lte":
		return fault{"is " + n.text + "; it must be " + rangeText(s.intOf("minimum"), s.intOf("maximum")), ""}
	case "array_min_items", "array_max_items", "array_min_properties", "array_max_properties":
		most := max(s.intOf("maxItems"), s.intOf("maxProperties"))
		least := max(s.intOf("minItems"), s.intOf("minProperties"))
		if int64(len(n.members)) < least {
			return fault{fmt.Sprintf("has %d entries; it must have at least %d", len(n.members), least),
				s.exampleRemedy()}
		}
		return fault{fmt.Sprintf("has %d entries; at most %d are accepted", len(n.members), most), ""}
	case "unique":
		return fault{"has " + quote(n.members[e.Details()["j"].(int)].value.text) + " twice", "keep one of them"}
	case "string_gte", "string_lte", "enum", "pattern", "number_not":
		if n.kind == isText {
			return s.textFault(n.text, true)
		}
	}
	return fault{}
}

// words holds the nouns for the types of JSON Schema.
var words = map[string]string{
	"null": "nothing", "boolean": "true or false", "number": "a number", "integer": "a whole number",
	"string": "text", "array": "a list", "object": "an object",
}

func (s *fileSchema) typeFault(n *node) fault {
	types, title := s.typeNames(), s.textOf("title")
	text, remedy := slices.Contains(types, string(isText)), ""
	if title == "" || !text {
		for i, t := range types {
			types[i] = words[t]
		}
		title = oneOf(types)
	}
	switch {
	case text && n.kind == isNumber && s.textOf("format") == formatDuration:
		remedy = "write the unit: " + n.text + "s"
	case text && (n.kind == isNumber || n.kind == isBool):
		remedy = "quote it"
	case n.kind == isNumber && s.textOf("type") == "integer":
		return fault{"must be a whole number in decimal digits", ""}
	}
	return fault{"must be " + title + ", not " + words[string(n.kind)], cmp.Or(remedy, s.exampleRemedy())}
}

func (s *fileSchema) knownKeys() (names []string) {
	for _, m := range s.membersOf("properties") {
		names = append(names, m.key)
	}
	return names
}

// secretName matches the names that people give to variables with secrets.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|passphrase|credential|api_?key|private`)

// completeNode walks through a value: it checks texts, notes literal secrets, and fills in
// defaults.
func (j *judge) completeNode(n *node, s *fileSchema, p path, secret bool) {
	secret = secret || s.textOf("writeOnly") == "true"
	plainVariable := len(p) > 1 && p[len(p)-2] == "env" && !secretName.MatchString(p[len(p)-1])
	if secret && n.kind == isText && isLiteral(n.text) && !plainVariable && s.textOf("format") != "ledger" {
		j.file.literals = append(j.file.literals, fmt.Sprintf("%s:%d:%d: %s is a literal in the file; a secret should be a reference, like ${env:NAME} or ${file:PATH}",
			j.file.name, n.at.line, n.at.col, p))
	}

	// The value itself, unless the validator refused it.
	switch {
	case j.reported[p.String()]:
	case n.kind == isText:
		j.completeText(n, s, p, secret)
	// The validator accepts 1.0 as an integer.
	case n.kind == isNumber && s.textOf("type") == "integer" && strings.ContainsAny(n.text, ".eE"):
		j.addFault(n.at, p, "", "%s must be a whole number in decimal digits", p)
	}

	for i, m := range n.members {
		key := m.key
		if n.kind == isList {
			key = "[" + strconv.Itoa(i) + "]"
		}
		sub, open := s.memberSchema(n.kind, key)
		if sub == nil || open && s.get("type") != nil && s.textOf("type") != string(n.kind) {
			continue
		}
		if names := s.get("propertyNames"); names != nil && n.kind == isMap {
			if f := s.subschema(names).textFault(key, false); f != (fault{}) {
				j.addFault(m.at, p.child(key), f.remedy, "%s name %s %s", s.textOf("title"), quote(key), f.problem)
			}
		}
		j.completeNode(m.value, sub, p.child(key), secret)
	}

	if n.kind != isMap {
		return
	}

	// A missing key gets the schema's default, at the place of its object.
	for _, m := range s.membersOf("properties") {
		if start := m.value.get("default"); start != nil && n.member(m.key) == nil {
			value := start.copyAt(n.at)
			n.members = append(n.members, member{m.key, n.at, value})
			j.completeNode(value, s.subschema(m.value), p.child(m.key), false)
		}
	}
}

// completeText checks a text that the validator accepted, and converts a duration to milliseconds.
func (j *judge) completeText(n *node, s *fileSchema, p path, secret bool) {
	f := s.textFault(n.text, false)
	if !secret && s.get("type") != nil && hasReference(n.text) {
		f = fault{"holds a reference; only values of headers, env and api_key may", remedyReference}
	}

	if f != (fault{}) {
		j.addFault(n.at, p, f.remedy, "%s %s", subjectOf(p), f.problem)
		return
	}
	if s.textOf("format") != formatDuration {
		return
	}

	ms, ok := parseDuration(n.text)
	least, _ := parseDuration(s.textOf("x-minimum"))
	most, _ := parseDuration(s.textOf("x-maximum"))

	switch {
	case !ok:
		j.addFault(n.at, p, durationRemedy, "%s is not a duration", p)
	case ms < least || ms > most:
		j.addFault(n.at, p, "", "%s is %s; it must be %s to %s", p, n.text, writeDuration(least), writeDuration(most))
	default:
		n.kind, n.text = isNumber, strconv.FormatInt(ms, 10)
	}
}

// textFault returns the fault of a text. refused is true if the validator rejected it.
func (s *fileSchema) textFault(text string, refused bool) fault {
	format := formats[s.textOf("format")]
	lines := format.lines || s.get("type") == nil
	most := s.intOf("maxLength")
	switch {
	case refused && s.get("enum") != nil:
		choices := s.textsOf("enum")
		return fault{"is " + quote(text) + "; it must be " + oneOf(choices), Nearest(text, choices)}
	case text == "" && refused:
		return fault{"is empty", cmp.Or(s.exampleRemedy(), "remove it")}
	case most > 0 && int64(len(text)) > most:
		return fault{fmt.Sprintf("has %d bytes; at most %d are accepted", len(text), most), ""}
	case hasControl(text, lines):
		return fault{"holds a line end or another control character", "remove it"}
	case refused && s.textOf("format") == formatDuration:
		return fault{"is not a duration", durationRemedy}
	case refused:
		return fault{"is not " + s.textOf("title"), s.exampleRemedy()}
	case format.check != nil:
		return format.check(text)
	}
	return fault{}
}

// readJudged reads and judges the text of a file: strict JSON if its name ends in ".json", else
// strict YAML. hint is the remedy for an empty file; without a hint, the file is JSON whatever its
// name.
func readJudged(name string, text []byte, s *fileSchema, most int, hint string) (*file, error) {
	f, text := openFile(name, text, most)
	f.secret = s == configSchema()
	switch {
	case len(f.faults) > 0:
	case hint == "" || strings.HasSuffix(strings.ToLower(name), ".json"):
		f.root = f.readJSON(text)
	default:
		f.root = f.readYAML(text, hint)
	}
	f.judgeNode(f.root, s, nil)
	return f, f.err()
}

// decode writes a judged value into a struct.
func decode(n *node, target any) {
	if err := json.Unmarshal(n.json(), target, json.MatchCaseInsensitiveNames(true)); err != nil {
		panic("config: a value that was judged does not decode: " + err.Error())
	}
}
