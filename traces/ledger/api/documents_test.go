package api_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// A recordedScene is a service whose ledger has runs of several outcomes.
type recordedScene struct {
	*fixture
	made, denied, held, refused ledger.RunRow
	runs                        *strings.Replacer // names of runs in paths
	mask                        *strings.Replacer // names of what differs each time
}

// random matches digests and hashes that contain random ids.
var random = regexp.MustCompile(`sha256:[0-9a-f]{64}|[0-9a-f]{12}\b|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{22}==|pgfsm-log-[0-9A-Z]+`)

func newRecordedScene(t *testing.T) *recordedScene {
	t.Helper()
	s := &recordedScene{fixture: newFixture(t)}
	content := ledgertest.Holding(1)
	check.NoError(t, s.RecordActivation(t.Context(), statestest.MustBundle(content, nil), ledger.ActivationReason{Cause: ledger.CauseStart}))
	s.made = s.Ask(carol, statestest.Content())
	s.Clock.Add(50 * time.Minute)
	s.denied = s.Hold(1)
	s.Clock.Add(time.Minute)
	s.deny(s.denied, s.token(ledger.RoleApprover, alice)).wantCode(t, 200, "")
	s.refused = s.AskRequest(states.Request{
		Actor: carol, At: s.Clock.Now().Format(policy.TimeForm), Kind: states.KindCall,
		Text: canonical.Text(`{"args":{"id":42},"server":"crm","tool":"drop_all","type":"call_tool"}`),
	}, statestest.Content())
	s.held = s.Hold(2)
	s.approve(s.held, s.token(ledger.RoleApprover, bob)).wantCode(t, 200, "")
	s.Clock.Add(time.Second)
	s.servers(&content)
	s.runs = strings.NewReplacer("{made}", s.made.RunID, "{held}", s.held.RunID, "{none}", ledgertest.NewID(t), "{bundle}", url.QueryEscape(string(s.made.Bundle)))
	s.mask = strings.NewReplacer(s.made.RunID, "(made)", s.denied.RunID, "(denied)", s.refused.RunID, "(refused)", s.held.RunID, "(held)", s.Owner(), "(process)")
	return s
}

// servers makes the service one that has servers. One tool has another definition than the pinned one. The last activated bundle denies.
func (s *recordedScene) servers(c *policy.Content) {
	s.TB.Helper()
	page := `{"tools":[{"name":"fetch_policy_entry","description":"\u202e<b>","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	c.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: []string{"fetch_policy_entry", "absent"}}}
	c.Pins = []policy.Pin{{Server: statestest.Server, Tool: "fetch_policy_entry", Definition: statestest.Definition()}}
	tools := present.ServerTools(c, statestest.MustBundle(*c, nil).Catalog("", statestest.Listings(page)), statestest.Server, &present.Pins{
		Allowlist: "allowlist.json", Definition: func(canonical.Digest) []byte { return []byte(`{"name":"fetch_policy_entry"}`) },
	})
	s.change(serving(present.Server{Server: statestest.Server, Status: policy.ServerUp, Tools: tools},
		present.Server{Server: "away", Status: policy.ServerDown, Tools: []present.ServerTool{}}))
	denying := statestest.Content()
	denying.Policy = statestest.Policies(rules.Policy{ID: "no", Effect: rules.Deny, Reason: "Not any more."})
	check.NoError(s.TB, s.RecordActivation(s.TB.Context(), statestest.MustBundle(denying, nil), ledger.ActivationReason{Cause: ledger.CauseStart}))
}

// TestDocuments compares each document with testdata.
func TestDocuments(t *testing.T) {
	s := newRecordedScene(t)
	auditor, reader := s.token(ledger.RoleAuditor, "auditor"), s.token(ledger.RoleApprover, alice)
	for _, tt := range []struct {
		name, path string
		auditors   bool // only they may read it
		differs    bool // other readers get less of it
	}{
		{"summary", "/summary?since=30m", false, false},
		{"summary-of-a-day", "/summary", false, false},
		{"summary-since-long-ago", "/summary?since=2001-01-01", false, false},
		{"entries", "/entries?limit=2&before=6", true, false},
		{"checkpoints", "/checkpoints", false, false},
		{"policies", "/policies", false, false},
		{"servers", "/servers", false, false},
		{"replicas", "/replicas", false, false},
		{"requests", "/requests?server=crm&tool=drop_all", false, false},
		{"status", "/status/{held}", false, false},
		{"steps", "/steps/{made}", false, true},
		{"what-if", "/what-if/{made}", false, false},
		{"what-if-by-its-own", "/what-if/{made}?bundle={bundle}", false, false},
		{"inclusion", "/inclusion/{held}", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := s.runs.Replace(tt.path)
			s.golden(t, tt.name, s.call(http.MethodGet, path, auditor, ""))
			other := s.call(http.MethodGet, path, reader, "")
			switch {
			case tt.auditors:
				other.wantCode(t, 403, "role_not_sufficient")
			case tt.differs:
				s.golden(t, tt.name+"-for-an-approver", other)
			default:
				s.golden(t, tt.name, other)
			}
		})
	}
	for _, path := range []string{"/steps/", "/what-if/", "/inclusion/"} {
		s.call(http.MethodGet, s.runs.Replace(path+"{none}"), auditor, "").wantCode(t, 404, "request_unknown")
	}
}

// golden compares a document with the one in testdata.
func (s *recordedScene) golden(t *testing.T, name string, r reply) {
	t.Helper()
	r.wantCode(t, 200, "")
	doc := jsontext.Value(r.body)
	check.NoError(t, doc.Indent(jsontext.WithIndent("  ")))
	text := random.ReplaceAllString(s.mask.Replace(string(doc)), "(random)")
	golden.File(t, filepath.Join("testdata", name+".json"), []byte(text+"\n"))
}

// TestQueries shows which queries are refused.
func TestQueries(t *testing.T) {
	d := newFixture(t)
	auditor := d.token(ledger.RoleAuditor, "auditor")
	run := d.Ask(carol, statestest.Content()).RunID
	for path, queries := range map[string][]string{ // in any order
		"/pending": {
			"limit=0", "limit=201", "limit=-1", "limit=02", "limit=+2", "limit=two", "limit=", "limit=1&limit=2", "after=x", "after=", "status=pending",
			"token=x", "%zz=1", "limit=1;after=x", "Limit=1",
		},
		"/requests":       {"status=", "status=open", "status=pending,", "status=Pending", "since=yesterday", "until=-24h", "actor=", "text=x"},
		"/entries":        {"type=x", "since=x", "until=x", "before=0", "before=x", "limit=0", "limit=201", "after=1"},
		"/summary":        {"since=yesterday", "until=1h"},
		"/policies":       {"before=x"},
		"/servers":        {"before=x"},
		"/what-if/" + run: {"", "bundle=", "bundle=x", "bundle=sha256%3A" + strings.Repeat("0", 64)}, // none is active
	} {
		for _, query := range queries {
			d.call(http.MethodGet, path+"?"+query, auditor, "").wantCode(t, 400, api.QueryInvalid)
		}
	}
}
