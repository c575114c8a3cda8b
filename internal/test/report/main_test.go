package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

// events are those of a package that fails to build, one with a failing test, and one with a test that lacks a program.
const events = `{"ImportPath":"m/built","Action":"build-output","Output":"built.go:2:12: undefined: x\n"}
{"Action":"start","Package":"m/failing"}
{"Action":"output","Package":"m/failing","Test":"TestGood","Output":"    good_test.go:3: not shown\n"}
{"Action":"output","Package":"m/failing","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/failing","Test":"TestBad","Output":"    bad_test.go:3: this test needs sh\n"}
{"Action":"output","Package":"m/failing","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"pass","Package":"m/failing","Test":"TestGood"}
{"Action":"fail","Package":"m/failing","Test":"TestBad"}
{"Action":"output","Package":"m/skips","Test":"TestPages/one","Output":"    a_test.go:3: this test needs chromium\n"}
{"Action":"output","Package":"m/skips","Test":"TestPages/one","Output":"    a_test.go:3: chromium is missing: install chromium\n"}
{"Action":"skip","Package":"m/skips","Test":"TestPages/one"}
{"Action":"pass","Package":"m/skips","Test":"TestPages"}
{"Action":"output","Package":"m/skips","Test":"TestLoad","Output":"    b_test.go:3: make bench runs this\n"}
{"Action":"skip","Package":"m/skips","Test":"TestLoad"}
{"Action":"output","Package":"m/failing","Output":"FAIL\n"}
{"Action":"output","Package":"m/failing","Output":"FAIL\tm/failing\t0.003s\n"}
{"Action":"fail","Package":"m/failing"}
{"Action":"output","Package":"m/skips","Output":"PASS\n"}
{"Action":"output","Package":"m/skips","Output":"ok  \tm/skips\t0.039s\n"}
{"Action":"pass","Package":"m/skips"}
a line that is no event
`

const printed = `built.go:2:12: undefined: x
    bad_test.go:3: this test needs sh
--- FAIL: TestBad (0.00s)
FAIL
FAIL	m/failing	0.003s
ok  	m/skips	0.039s
a line that is no event
`

func TestReport(t *testing.T) {
	r := newReport()
	var output bytes.Buffer
	check.NoError(t, r.read(strings.NewReader(events), &output))
	if diff := cmp.Diff(printed, output.String()); diff != "" {
		t.Errorf("read() prints (-want +got):\n%s", diff)
	}
	if got, want := r.summary(), "Skipped tests: 2, 1 of them because a program is missing. To run them: install chromium."; got != want {
		t.Errorf("summary() = %q, want %q", got, want)
	}
	if got, want := r.tools(), "m/failing TestBad ran\nm/skips TestPages lacks\n"; got != want {
		t.Errorf("tools() = %q, want %q", got, want)
	}
}
