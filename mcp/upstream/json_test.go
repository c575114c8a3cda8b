package upstream

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/wire"
)

func TestReadIncoming(t *testing.T) {
	tests := []struct {
		name, doc string
		ok        bool
	}{
		{"result", `{"jsonrpc":"2.0","id":1,"result":{}}`, true},
		{"result-with-duplicates-inside", `{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, true},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":[]}}`, true},
		{"notification", `{"jsonrpc":"2.0","method":"m"}`, true},
		{"request-with-string-id", `{"jsonrpc":"2.0","id":"a","method":"m","params":{}}`, true},
		{"longest-id-of-a-request", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", wire.MaxID-2) + `","method":"ping"}`, true},
		{"id-of-a-request-past-the-longest", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", wire.MaxID-1) + `","method":"ping"}`, false},
		{"largest-id", `{"jsonrpc":"2.0","id":9223372036854775807,"result":{}}`, true},
		{"id-past-the-largest", `{"jsonrpc":"2.0","id":9223372036854775808,"result":{}}`, false},
		{"id-zero", `{"jsonrpc":"2.0","id":0,"result":{}}`, false},
		{"id-negative", `{"jsonrpc":"2.0","id":-1,"result":{}}`, false},
		{"id-missing", `{"jsonrpc":"2.0","result":{}}`, false},
		{"id-twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, false},
		{"id-twice-escaped", `{"jsonrpc":"2.0","id":1,"\u0069d":2,"result":{}}`, false},
		{"result-and-method", `{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, false},
		{"method-no-string", `{"jsonrpc":"2.0","id":1,"method":1}`, false},
		{"error-without-code", `{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}`, false},
		{"error-without-message", `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, false},
		{"error-code-fraction", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}`, false},
		{"error-code-twice", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":"m"}}`, false},
		{"id-fraction", `{"jsonrpc":"2.0","id":1.0,"result":{}}`, false},
		{"id-as-text", `{"jsonrpc":"2.0","id":"1","result":{}}`, false},
		{"result-twice", `{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, false},
		{"result-and-error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, false},
		{"version-1.0", `{"jsonrpc":"1.0","id":1,"result":{}}`, false},
		{"not-utf-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"broken\":\"\xff\"}}", false},
		{"empty", ``, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := readIncoming([]byte(tt.doc)); (err == nil) != tt.ok {
				t.Errorf("readIncoming(%s) = %v, want ok = %t", tt.doc, err, tt.ok)
			}
		})
	}
}

// FuzzReadIncoming holds the strict reading to the SDK's: of what it lets pass, both see the same message.
func FuzzReadIncoming(f *testing.F) {
	for _, seed := range seeds(f, "messages") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		h, err := readIncoming(doc)
		checkLenientReading(t, doc, h, err)
		if err != nil {
			return
		}
		theirs, err := jsonrpc.DecodeMessage(doc)
		if err != nil {
			return // stricter than we are: it refuses, which is safe
		}
		switch theirs := theirs.(type) {
		case *jsonrpc.Request:
			if h.Method != theirs.Method {
				t.Errorf("method = %q, the SDK reads %q", h.Method, theirs.Method)
			}
		case *jsonrpc.Response:
			if id, ok := theirs.ID.Raw().(int64); h.Method != "" || (h.failed == nil) != (theirs.Error == nil) || !ok ||
				id != h.id && h.id < 1<<53 {
				t.Errorf("response %+v, the SDK reads %+v", h, theirs)
			}
			if theirs.Error == nil && !bytes.Contains(doc, theirs.Result) {
				t.Errorf("the SDK's result %s is not in the document", theirs.Result)
			}
		}
	})
}

// checkLenientReading holds the strict reading of a message to the lenient one, which does not read the members inside.
func checkLenientReading(t *testing.T, doc []byte, strict incoming, err error) {
	t.Helper()
	lenient, lenientErr := readLeniently(doc)
	if (err == nil) != (lenientErr == nil) {
		t.Fatalf("readIncoming() error = %v, readLeniently() error = %v", err, lenientErr)
	}
	if err != nil {
		return
	}
	strict.Members = nil
	if diff := cmp.Diff(lenient, strict, cmp.AllowUnexported(incoming{})); diff != "" {
		t.Errorf("the strict reading differs (-lenient +strict):\n%s", diff)
	}
}

func seeds(tb testing.TB, folder string) [][]byte {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("testdata/%s: %d seeds, %v, want some", folder, len(files), err)
	}
	var out [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		check.NoError(tb, err)
		out = append(out, b)
	}
	return out
}
