package origin_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/origin"
)

// A situation is a call with one argument, and the session before it.
type situation struct {
	Name    string             `json:"name"`
	Arg     string             `json:"arg"`
	Role    string             `json:"role"`
	Value   jsontext.Value     `json:"value"`
	Schema  jsontext.Value     `json:"schema"`
	Prompt  string             `json:"prompt"`
	Source  string             `json:"source"`
	Prompts origin.PromptLabel `json:"prompts"`
	Label   origin.ToolLabel   `json:"label"`
	Results []struct {
		Tool   string         `json:"tool"`
		Call   int64          `json:"call"`
		Entry  int64          `json:"entry"`
		Args   jsontext.Value `json:"args"`
		Value  jsontext.Value `json:"value"`
		Failed bool           `json:"failed"`
		Found  bool           `json:"found"`
	} `json:"results"`
	Want string         `json:"want"` // origin, or origin/form
	Twin jsontext.Value `json:"twin"` // members that make the value not found
}

// readPairs returns the situations of testdata, each with its twin.
func readPairs(t testing.TB) (pairs [][2]situation) {
	t.Helper()
	data, err := os.ReadFile("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var pair [2]situation
		if err := json.Unmarshal(line, &pair[0], json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		twin, err := mergeMembers(line, pair[0].Twin)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(twin, &pair[1], json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("twin of %s: %v", pair[0].Name, err)
		}
		pairs = append(pairs, pair)
	}
	if len(pairs) < 60 {
		t.Fatalf("got %d pairs, want at least 60", len(pairs))
	}
	return pairs
}

// mergeMembers replaces members of a JSON object.
func mergeMembers(object, members []byte) ([]byte, error) {
	merged := map[string]jsontext.Value{}
	if err := json.Unmarshal(object, &merged); err != nil {
		return nil, err
	}
	var changes map[string]jsontext.Value
	if err := json.Unmarshal(members, &changes); err != nil {
		return nil, err
	}
	for name, value := range changes { // the order does not matter: names are unique
		merged[name] = value
	}
	return json.Marshal(merged)
}

// find returns the leaves of the situation's call.
func (s *situation) find(t testing.TB) []origin.Leaf {
	t.Helper()
	rules, session, args := s.build(t)
	return rules.Find(session, "mail", "send", args, s.Schema)
}

func (s *situation) build(t testing.TB) (*origin.Rules, *origin.Session, jsontext.Value) {
	t.Helper()
	arg := s.Arg
	if arg == "" {
		arg = "to"
	}
	role := origin.RoleLabel{Server: "mail", Tool: "send"}
	switch s.Role {
	case "", origin.Target:
		role.Target = []string{arg}
	case origin.Amount:
		role.Amount = []string{arg}
	default:
		t.Fatalf("unknown role %q", s.Role)
	}
	s.Label.Server, s.Label.Tool = "book", "list"
	rules, err := origin.Compile(origin.Labels{
		Tools:   []origin.ToolLabel{s.Label},
		Roles:   []origin.RoleLabel{role},
		Prompts: s.Prompts,
	})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}

	source := s.Source
	if source == "" {
		source = "user"
	}
	session := &origin.Session{Prompts: []origin.Prompt{{Entry: 1, Source: source, Text: s.Prompt}}, Holds: holds}
	var sent []origin.Sent
	for i, r := range s.Results {
		result := origin.Result{
			Run: "run-" + strconv.Itoa(i), Server: "book", Tool: r.Tool, Failed: r.Failed, Found: r.Found,
			Call: r.Call, Entry: r.Entry, Value: toCanonical(t, r.Value),
		}
		if r.Tool == "" {
			result.Tool = "list"
		}
		args := toCanonical(t, r.Args)
		switch {
		case r.Args == nil:
			args = jsontext.Value("{}")
		case r.Args.Kind() == 'n':
			args = nil
		}
		if r.Call == 0 {
			result.Call, result.Entry = int64(2*i+2), int64(2*i+3)
		}
		session.Results = append(session.Results, result)
		sent = append(sent, origin.NewSent(result.Call, args, nil))
	}
	session.Sent = func() ([]origin.Sent, string) { return sent, "" }
	return rules, session, toCanonical(t, canonical.MustMarshal(map[string]jsontext.Value{arg: s.Value}))
}

// holds is the only condition of the situations.
func holds(condition string, item jsontext.Value) bool {
	return condition == "item.ok" && bytes.Contains(item, []byte(`"ok":true`))
}

func toCanonical(t testing.TB, v jsontext.Value) jsontext.Value {
	t.Helper()
	if v == nil {
		return nil
	}
	c, err := canonical.JSON(v)
	if err != nil {
		t.Fatalf("%s: %v", v, err)
	}
	return c
}

func TestPairs(t *testing.T) {
	for _, pair := range readPairs(t) {
		t.Run(pair[0].Name, func(t *testing.T) {
			wantOrigin, wantForm, _ := strings.Cut(pair[0].Want, "/")
			leaves := pair[0].find(t)
			for _, leaf := range leaves {
				if leaf.Origin != wantOrigin || leaf.Form != wantForm {
					t.Errorf("got origin %q and form %q, want %q and %q: %+v", leaf.Origin, leaf.Form, wantOrigin, wantForm, leaf)
				}
			}
			if pair[0].Role == "" && !origin.Found(leaves) {
				t.Errorf("the target is not found: %+v", leaves)
			}

			none := 0
			twin := pair[1].find(t)
			for _, leaf := range twin {
				if leaf.Origin == origin.None {
					none++
				}
			}
			if none == 0 && len(twin) > 0 || origin.Found(twin) {
				t.Errorf("the twin is found: %+v", twin)
			}
		})
	}
}
