package policy_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/states/statestest"
)

// TestReadSentCall: a call that was sent in parts is read as its text is.
func TestReadSentCall(t *testing.T) {
	for _, tc := range []struct{ name, server, tool, args string }{
		{"canonical", "s", "t", `{"a":1,"b":[true,null,"x"]}`},
		{"unordered", "s", "t", ` { "b" : 1.0, "a" : "\u0041" } `},
		{"names-with-escapes", `s"\`, "t\n</é", `{}`},
		{"name-twice", "s", "t", `{"a":1,"a":1}`},
		{"text-behind", "s", "t", `{}}`},
		{"smuggled-member", "s", "t", `{},"tool":"u"`},
		{"array", "s", "t", `[]`},
		{"null", "s", "t", `null`},
		{"invalid-utf8", "s", "t", "{\"a\":\"\xff\"}"},
		{"name-that-is-not-utf8", "s", "t\xff", `{}`},
		{"no-tool", "s", "", `{}`},
		{"depth-at-the-limit", "s", "t", strings.Repeat(`{"a":`, policy.DefaultJSONDepth-2) + "{}" + strings.Repeat("}", policy.DefaultJSONDepth-2)},
		{"depth-one-past", "s", "t", strings.Repeat(`{"a":`, policy.DefaultJSONDepth-1) + "{}" + strings.Repeat("}", policy.DefaultJSONDepth-1)},
		{"too-many-values", "s", "t", `{"a":[0` + strings.Repeat(",0", policy.MaxArgumentsValues) + `]}`},
	} {
		t.Run(tc.name, func(t *testing.T) { checkSentCall(t, tc.server, tc.tool, []byte(tc.args)) })
	}
}

// FuzzReadSentCall holds every call to what TestReadSentCall says.
func FuzzReadSentCall(f *testing.F) {
	f.Add("s", "t", []byte(`{"b":1,"a":"\u0041"}`))
	f.Add("s", "t\xff", []byte(`{},"tool":"u"`))
	f.Fuzz(func(t *testing.T, server, tool string, args []byte) { checkSentCall(t, server, tool, args) })
}

func checkSentCall(t *testing.T, server, tool string, args []byte) {
	t.Helper()
	b := statestest.MustBundle(statestest.Content(), nil)
	c := b.ReadSentCall(server, tool, args)
	read, readVerdict := c.Read(b.Limits())
	want, wantVerdict := policy.ReadCall(c.Text, b.Limits())
	if c.Large != nil {
		if c.Plan() != nil {
			t.Error("ReadSentCall() = a plan without its arguments")
		}
		return
	}
	if readVerdict != wantVerdict || (read == nil) != (want == nil) || c.Plan() != nil && c.Plan() != read {
		t.Fatalf("Read() = %v, %+v, want %v, %+v", read, readVerdict, want, wantVerdict)
	}
	if want == nil {
		return
	}
	if read.Server != want.Server || read.Tool != want.Tool || string(read.Canonical()) != string(want.Canonical()) ||
		string(read.Args.Bytes()) != string(want.Args.Bytes()) || read.Digest() != want.Digest() || read.ArgsDigest() != want.ArgsDigest() {
		t.Errorf("Read() = %+v, want %+v", read, want)
	}
}
