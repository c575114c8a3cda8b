package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

func TestMessagesHaveOneReading(t *testing.T) {
	id := strings.Repeat("9", wire.MaxID)
	for _, tt := range []struct {
		name, doc string
		code      int64 // 0: it is read
		id        string
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, `1`},
		{"text-id", `{"jsonrpc":"2.0","id":"a\u0062","method":"ping"}`, 0, `"a\u0062"`},
		{"id-beyond-doubles", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, 0, `9007199254740993`},
		{"id-at-the-limit", `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`, 0, id},
		{"id-one-past", `{"jsonrpc":"2.0","id":9` + id + `,"method":"ping"}`, wire.InvalidRequest, ""},
		{"id-fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, wire.InvalidRequest, ""},
		{"id-null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, wire.InvalidRequest, ""},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0, ""},
		{"result", `{"jsonrpc":"2.0","id":1,"result":null}`, 0, `1`},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, 0, `1`},
		{"method-twice", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, wire.ParseError, `1`},
		{"name-twice-far-inside", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[{"b":1,"b":2}]}}`, wire.ParseError, `1`},
		{"another-letter-case", `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, wire.InvalidRequest, `1`},
		{"unknown-member", `{"jsonrpc":"2.0","id":1,"method":"ping","x":1}`, wire.InvalidRequest, `1`},
		{"text-behind", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, wire.InvalidRequest, `1`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, wire.InvalidRequest, ""},
		{"version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, wire.InvalidRequest, `1`},
		{"params-are-null", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, 0, `1`},
		{"request-and-response", `{"jsonrpc":"2.0","id":1,"method":"ping","result":1}`, wire.InvalidRequest, `1`},
		{"result-and-error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`, wire.InvalidRequest, ""},
		{"neither", `{"jsonrpc":"2.0","id":1}`, wire.InvalidRequest, `1`},
		{"params-without-a-method", `{"jsonrpc":"2.0","id":1,"result":1,"params":{}}`, wire.InvalidRequest, ""},
		{"method-empty", `{"jsonrpc":"2.0","id":1,"method":""}`, wire.InvalidRequest, `1`},
		{"method-at-the-limit", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", wire.MaxMethod) + `"}`, 0, `1`},
		{"method-one-past", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", wire.MaxMethod+1) + `"}`, wire.InvalidRequest, `1`},
		{"depth-at-the-limit", deep(wire.MaxDepth), 0, `1`},
		{"depth-one-past", deep(wire.MaxDepth + 1), wire.ParseError, `1`},
		{"broken-utf-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", wire.ParseError, `1`},
		{"lone-surrogate", `{"jsonrpc":"2.0","id":1,"method":"p\ud800"}`, wire.ParseError, `1`},
		{"id-at-the-end", `{"jsonrpc":"2.0","method":"x","params":{"id":7,"a":["\ud83d"]}, "i\u0064" : "a" }`, wire.ParseError, `"a"`},
		{"id-twice", `{"jsonrpc":"2.0","id":1,"id":1,"method":"x"}`, wire.ParseError, ""},
		{"id-in-a-text", `{"jsonrpc":"2.0","method":"\",\"id\":1,\"\ud83d"}`, wire.ParseError, ""},
		{"id-cut", `{"jsonrpc":"2.0","method":"x","id":1`, wire.ParseError, ""},
		{"id-that-is-half-a-pair", `{"jsonrpc":"2.0","method":"x","id":"\ud83d"}`, wire.ParseError, ""},
		{"response", `{"jsonrpc":"2.0","id":1,"result":"\ud83d"}`, wire.ParseError, ""},
		{"nothing", ``, wire.ParseError, ""},
		{"half", `{"jsonrpc":"2.0","id":1,"method":"pi`, wire.ParseError, `1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wire.Read([]byte(tt.doc))
			var f *wire.Fault
			switch {
			case tt.code == 0 && (err != nil || string(m.ID) != tt.id):
				t.Errorf("Read() = %s, %v", m.ID, err)
			case tt.code != 0 && (!errors.As(err, &f) || f.Code != tt.code || string(f.ID) != tt.id || f.Reason == ""):
				t.Errorf("Read() = %+v, %#v, want %d, id %q", m, err, tt.code, tt.id)
			}
		})
	}
}

func TestReasonsOfSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{ // in any order
		`"\ud83d"`:      "half of a surrogate pair",
		"\"\xff\"":      "not UTF-8",
		`{"a":1,"a":2}`: "a name comes twice",
		`tru`:           "at byte 15",
	} {
		_, err := wire.Read([]byte(`{"id":1,"x":` + text + `}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestManyValues: of the messages with too many values, only requests are read.
func TestManyValues(t *testing.T) {
	message := func(method string, values int) string { // the message, jsonrpc, id, method, params, name and a are values, too
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"x","a":[0` + strings.Repeat(",0", values-8) + `]}}`
	}
	for _, tt := range []struct {
		name, doc string
		read      bool
		large     bool
	}{
		{"call-at-the-limit", message("tools/call", wire.MaxValues), true, false},
		{"call-one-past", message("tools/call", wire.MaxValues+1), true, true},
		{"notification-at-the-limit", strings.Replace(message("tools/call", wire.MaxValues+1), `"id":1,`, "", 1), true, false},
		{"notification-one-past", strings.Replace(message("tools/call", wire.MaxValues+2), `"id":1,`, "", 1), false, false},
		{"member-twice", strings.Replace(message("tools/call", wire.MaxValues), `"id":1,`, `"id":1,"id":1,`, 1), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wire.Read([]byte(tt.doc))
			if (err == nil) != tt.read || m.Large != tt.large {
				t.Errorf("Read() = large %t, %v; want read %t, large %t", m.Large, err, tt.read, tt.large)
			}
		})
	}
}

// deep is a request that is nested so many levels.
func deep(levels int) string {
	inner := levels - 2 // the message, and its params
	return `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", inner) + strings.Repeat("]", inner) + `}}`
}

func TestSetTouchesNothingElse(t *testing.T) {
	for _, tt := range []struct{ name, doc, member, value, want string }{
		{"replaced-in-place", `{ "a" : 1.0, "b":"\u003c", "c":9007199254740993 }`, "b", `2`, `{"a":1.0,"b":2,"c":9007199254740993}`},
		{"added-in-front", `{"a":[ 1 ]}`, "b", `2`, `{"b":2,"a":[ 1 ]}`},
		{"taken-out", `{"a":1,"b":2}`, "a", ``, `{"b":2}`},
		{"taken-out-of-nothing", `{}`, "a", ``, `{}`},
		{"of-nothing", ``, "a", `1`, `{"a":1}`},
		{"name-by-an-escape", `{"\u0061":1}`, "a", `2`, `{"a":2}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var value []byte
			if tt.value != "" {
				value = []byte(tt.value)
			}
			got, err := wire.Set([]byte(tt.doc), tt.member, value)
			if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
				t.Errorf("Set() error %v (-want +got)\n%s", err, diff)
			}
		})
	}
	for _, doc := range []string{`[]`, `{"a":1,"a":2}`, `{"a":1} x`, `{`} {
		if got, err := wire.Set([]byte(doc), "b", []byte("1")); err == nil {
			t.Errorf("Set(%s) = %s", doc, got)
		}
	}
}

// FuzzRead: what is read is spliced into a message that is read alike.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1.0,"\u003c"]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"x":1e400}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":-0,"error":{"code":-32601,"message":"m"}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := wire.Read(doc)
		if err != nil {
			var fault *wire.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("Read() = %v", err)
			}
			return
		}
		var again []byte
		switch {
		case m.Method != "":
			again = wire.Call(nil, m.ID, m.Method, m.Params)
		case m.Result != nil:
			again = wire.Response(nil, m.ID, m.Result)
		default:
			again = wire.Failure(nil, m.ID, m.Error)
		}
		n, err := wire.Read(again)
		if err != nil || n.Method != m.Method || string(n.ID) != string(m.ID) || string(n.Params) != string(m.Params) ||
			string(n.Result) != string(m.Result) || string(n.Error) != string(m.Error) {
			t.Fatalf("%s\nbecomes\n%s\n%v", doc, again, err)
		}
	})
}
