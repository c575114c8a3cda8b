package schema

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

const (
	hostileDeadline = 20 * time.Second         // for a case, on a busy machine and under -race
	hostileMemory   = 900 << 20                // what a case may allocate, in bytes
	hostileURL      = "http://listener/x.json" // replaced by the listener's
	hostileFile     = "file:///canary.json"    // replaced by the file's
	fine            = "accepted"
)

// A hostileCase is a schema, a document to judge by it if it compiles, and what comes of it: a code, or "accepted".
type hostileCase struct {
	name, want  string
	schema, doc func() string
}

func text(s string) func() string { return func() string { return s } }

// many joins n texts made from a format with one number each.
func many(n int, format, sep string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(sep)
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// diamond has n levels of which each stands for the next one twice.
func diamond(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

func chain(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

func nested(open, middle, end string, n int) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
}

// colliding is n arrays, all different, that the validator's own hash cannot tell apart: it puts a byte 4 before each
// string, so that one string with such bytes in it and several strings look the same.
func colliding(n int) string {
	const places = 16
	var items []string
	for mask := range n {
		item := `["a`
		for bit := range places {
			if mask>>bit&1 == 1 {
				item += `","a`
			} else {
				item += `\u0004a`
			}
		}
		items = append(items, item+`"]`)
	}
	return "[" + strings.Join(items, ",") + "]"
}

var hostileCases = []hostileCase{
	{"not-self", CodeReferenceCycle, text(`{"not":{"$ref":"#"}}`), text(`{}`)},
	{"recursive-ref-loop", CodeReferenceRefused,
		text(`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$recursiveRef":"#"}`),
		text(`{}`)},
	{"remote-ref", CodeReferenceRefused, text(`{"$ref":"` + hostileURL + `"}`), text(`{}`)},
	{"remote-ref-in-unused-part", fine, text(`{"$defs":{"a":{"$ref":"` + hostileURL + `"}}}`), text(`{}`)},
	{"remote-ref-through-id", CodeReferenceRefused,
		text(`{"$id":"` + hostileURL + `","$ref":"other.json"}`), text(`{}`)},
	{"file-ref", CodeReferenceRefused, text(`{"$ref":"` + hostileFile + `"}`), text(`{}`)},
	{"remote-dialect", CodeDialectUnknown, text(`{"$schema":"` + hostileURL + `"}`), text(`{}`)},
	{"remote-dialect-inside", CodeReferenceRefused,
		text(`{"properties":{"a":{"$schema":"` + hostileURL + `"}}}`), text(`{}`)},
	{"dialect-of-one-vocabulary", CodeDialectUnknown,
		text(`{"$schema":"https://json-schema.org/draft/2020-12/meta/core","properties":{"a":false}}`), text(`{"a":1}`)},
	{"all-of-diamond", CodeExpansionTooLarge, func() string { return diamond(24) }, text(`{}`)},
	{"long-chain", CodeExpansionTooLarge, func() string { return chain(2000) }, text(`{}`)},
	{"many-levels-of-arrays", CodeTooDeep, func() string { return nested(`[`, "", "]", 500_000) }, text(`{}`)},
	{"long-pattern", CodePatternRefused,
		func() string { return `{"pattern":"` + strings.Repeat("ab?", 100_000) + `"}` }, text(`{}`)},
	{"costly-pattern-long-string", CodeDocumentTooCostly, text(`{"properties":{"a":{"pattern":"(x+x+){100}y"}}}`),
		func() string { return `{"a":"` + strings.Repeat("x", 1<<20) + `"}` }},
	{"enum-times-items", CodeDocumentTooCostly,
		func() string { return `{"items":{"enum":[` + many(90_000, `%d`, ",") + `]}}` },
		func() string { return `[` + many(100_000, `-%d`, ",") + `]` }},
	{"required-times-items", CodeDocumentTooCostly,
		func() string { return `{"items":{"required":[` + many(60_000, `"k%d"`, ",") + `]}}` },
		func() string { return `[` + many(100_000, `{"x%d":1}`, ",") + `]` }},
	{"colliding-unique-items", fine, text(`{"properties":{"a":{"uniqueItems":true}}}`),
		func() string { return `{"a":` + colliding(40_000) + `}` }},
	{"colliding-unique-enum", fine, func() string {
		return `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"enum":` + colliding(8_000) + `}}}`
	}, text(`{}`)},
	{"unique-items-at-every-level", CodeDocumentTooCostly, text(`{"properties":{"a":{"$ref":"#/$defs/u"}},
		"$defs":{"u":{"uniqueItems":true,"items":{"$ref":"#/$defs/u"}}}}`),
		func() string { return `{"a":` + nested("[", "["+many(50_000, "%d", ",")+"]", "]", 100) + `}` }},
	{"many-dependent-schemas", fine,
		func() string { return `{"dependentSchemas":{` + many(8_000, `"p%d":{"minProperties":1}`, ",") + `}}` }, text(`{}`)},
	{"long-names", CodeTooLarge, func() string {
		return `{"properties":{"` + strings.Repeat("n", 400_000) + `":{"properties":{` + many(4000, `"p%d":{}`, ",") + `}}}}`
	}, text(`{}`)},
	{"references-to-unknown-keywords", fine, func() string {
		return `{"x":{` + many(1500, `"k%d":{"y":{}}`, ",") + `},"allOf":[` + many(1500, `{"$ref":"#/x/k%d/y"}`, ",") + `]}`
	}, text(`{}`)},
	{"identifier-of-the-meta-schema", fine,
		text(`{"$id":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{}}}`),
		text(`{"a":1}`)},
	{"identifier-of-the-meta-schema-and-ref-to-it", CodeReferenceCycle,
		text(`{"$id":"https://json-schema.org/draft/2020-12/schema",
			"$ref":"https://json-schema.org/draft/2020-12/schema"}`), text(`{}`)},
	{"identifier-of-the-gate", fine, text(`{"$id":"` + documentURL + `","properties":{"a":{}}}`), text(`{"a":1}`)},
	{"identifier-that-is-no-url", CodeReferenceRefused, text(`{"$id":"http://[::1"}`), text(`{}`)},
	{"meta-schema-as-a-type", CodeReferenceRefused,
		text(`{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`), text(`{"a":{}}`)},
	{"many-keys-unevaluated", CodeDocumentTooCostly, func() string {
		return `{"allOf":[` + many(5000, `{"minProperties":%d}`, ",") + `],"properties":{"a":{}}}`
	}, func() string { return `{` + many(100_000, `"k%d":1`, ",") + `}` }},
}

// TestHostile gives every case a deadline and a bound on what it allocates.
func TestHostile(t *testing.T) {
	url, seen := listener(t)
	file := canary(t)
	for _, c := range hostileCases {
		t.Run(c.name, func(t *testing.T) {
			schema := strings.ReplaceAll(strings.ReplaceAll(c.schema(), hostileURL, url), hostileFile, file)
			doc := []byte(c.doc())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)

			came := make(chan string, 1)
			go func() { came <- outcome([]byte(schema), doc) }()
			select {
			case got := <-came:
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			case <-time.After(hostileDeadline):
				t.Fatalf("it takes more than %s", hostileDeadline)
			}

			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > hostileMemory {
				t.Errorf("it allocates %d bytes, want at most %d", took, hostileMemory)
			}
			if n := seen.Load(); n != 0 {
				t.Errorf("the listener saw %d connections, want none", n)
			}
		})
	}
}

func outcome(schema, doc []byte) string {
	s, err := Compile(schema, DefaultLimits())
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Code
	}
	var invalid *InvalidError
	if errors.As(s.Judge(doc), &invalid) {
		return invalid.Code
	}
	return fine
}

// listener counts connections on loopback and hangs up.
func listener(t *testing.T) (url string, seen *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	seen = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			seen.Add(1)
			conn.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/x.json", seen
}

// canary is the URL of a file that holds a schema: were it read, the reference to it would compile.
func canary(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "canary.json")
	check.NoError(t, os.WriteFile(file, []byte(`{"type":"object"}`), 0o600))
	return "file://" + file
}
