package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

var errDisk = errors.New("the disk is on fire")

func failing(op ledgertest.Op, _ int) error {
	if op == ledgertest.Commit {
		return errDisk
	}
	return nil
}

func notReady(context.Context) []api.NotReady {
	return []api.NotReady{api.NewNotReady(errDisk, api.WorkerBehind)}
}

// A wire is a connection to a real server, on which anything can be written.
type wire struct {
	t  *testing.T
	c  net.Conn
	in *bufio.Reader
}

// serves runs a server until the test ends, and returns where.
func serves(t *testing.T, h http.Handler, l api.Limits) net.Addr {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeWithin(ctx, on, h, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return on.Addr()
}

func dial(t *testing.T, to net.Addr) *wire {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	check.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	check.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) writes(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.c, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) reads() reply {
	w.t.Helper()
	got, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("ReadResponse() = %v", err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	check.NoError(w.t, err)
	return reply{got.StatusCode, got.Header, string(b)}
}

// closed wants that nothing more comes.
func (w *wire) closed() {
	w.t.Helper()
	if b, err := io.ReadAll(w.in); err != nil && !strings.Contains(err.Error(), "reset") || len(b) > 0 {
		w.t.Errorf("the connection goes on: %q, %v", b, err)
	}
}

// TestHostileCalls writes calls as only an attacker writes them. None of them decides anything. In the texts, @ stands for
// the request line's target, # for the token, and % for a good ballot.
func TestHostileCalls(t *testing.T) {
	const ok = "Host: " + here + "\r\nAuthorization: Bearer #\r\n"
	const js = "Content-Type: application/json\r\n"
	post := func(headers, body string) string {
		return fmt.Sprintf("POST /approve/@ HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(body), body)
	}
	d := newFixture(t)
	q := d.Hold(1)
	good := ballot(q, "yes")
	for _, c := range []struct {
		name, text string
		status     int
		code       api.Code
	}{
		{"other-host", post("Host: evil.example.com\r\nAuthorization: Bearer #\r\n"+js, good), 421, api.HostRefused},
		{"host-without-port", post("Host: 127.0.0.1\r\nAuthorization: Bearer #\r\n"+js, good), 421, api.HostRefused},
		{"host-with-a-dot-behind", post("Host: approvals.example.com.\r\nAuthorization: Bearer #\r\n"+js, good), 421, api.HostRefused},
		{"no-host-http-1.0", "GET /pending HTTP/1.0\r\nAuthorization: Bearer #\r\n\r\n", 421, api.HostRefused},
		{"absolute-target-of-another-host", "GET http://evil/pending HTTP/1.1\r\n" + ok + "\r\n", 421, api.HostRefused},
		{"forwarded-host-counts-for-nothing", "GET /pending HTTP/1.1\r\nHost: evil\r\nX-Forwarded-Host: " + here + "\r\nAuthorization: Bearer #\r\n\r\n",
			421, api.HostRefused},
		{"other-origin", post(ok+js+"Origin: http://evil.example.com\r\n", good), 403, api.OriginRefused},
		{"origin-null", post(ok+js+"Origin: null\r\n", good), 403, api.OriginRefused},
		{"origin-of-another-port", post(ok+js+"Origin: http://127.0.0.1:9999\r\n", good), 403, api.OriginRefused},
		{"origin-begins-alike", post(ok+js+"Origin: http://"+here+".evil.com\r\n", good), 403, api.OriginRefused},
		{"another-site", post(ok+js+"Sec-Fetch-Site: cross-site\r\n", good), 403, api.OriginRefused},
		{"same-site-is-not-same-origin", post(ok+js+"Sec-Fetch-Site: same-site\r\n", good), 403, api.OriginRefused},
		{"preflight", "OPTIONS /approve/@ HTTP/1.1\r\n" + ok + "Origin: http://evil\r\nAccess-Control-Request-Method: POST\r\n\r\n", 403, api.OriginRefused},
		{"connect", "CONNECT 127.0.0.1:9464 HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"options-star", "OPTIONS * HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"two-authorizations", post(ok+"Authorization: Bearer x\r\n"+js, good), 400, api.HeaderRepeated},
		{"two-content-types", post(ok+js+"Content-Type: text/plain\r\n", good), 400, api.HeaderRepeated},
		{"two-origins", post(ok+js+"Origin: http://"+here+"\r\nOrigin: http://evil\r\n", good), 400, api.HeaderRepeated},
		{"two-keys", post(ok+js+"Idempotency-Key: a\r\nIdempotency-Key: b\r\n", good), 400, api.HeaderRepeated},
		{"path-dots", "GET /requests/../pending HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"path-two-slashes", "GET //pending HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"path-slash-behind", "GET /pending/ HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"path-escaped", "GET /%70ending HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"path-escaped-slash", "GET /status%2F@ HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"path-nul", "GET /pending%00 HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"run-and-more", "GET /status/@/x HTTP/1.1\r\n" + ok + "\r\n", 404, api.PathUnknown},
		{"method-lower-case", "get /pending HTTP/1.1\r\n" + ok + "\r\n", 405, api.MethodUnknown},
		{"approve-by-get", "GET /approve/@ HTTP/1.1\r\n" + ok + "\r\n", 405, api.MethodUnknown},
		{"method-override", "GET /approve/@?_method=POST HTTP/1.1\r\n" + ok + "X-HTTP-Method-Override: POST\r\n\r\n", 405, api.MethodUnknown},
		{"delete", "DELETE /status/@ HTTP/1.1\r\n" + ok + "\r\n", 405, api.MethodUnknown},
		{"body-of-a-get", "GET /pending HTTP/1.1\r\n" + ok + "Content-Length: 2\r\n\r\n{}", 400, api.BodyNotExpected},
		{"chunked-body-of-a-get", "GET /pending HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400, api.BodyNotExpected},
		{"form", post(ok+"Content-Type: application/x-www-form-urlencoded\r\n", "expected_digest=x"), 415, api.ContentType},
		{"plain-text-as-a-form-could-send-it", post(ok+"Content-Type: text/plain\r\n", good), 415, api.ContentType},
		{"no-content-type", post(ok, good), 415, api.ContentType},
		{"other-charset", post(ok+"Content-Type: application/json; charset=utf-16\r\n", good), 415, api.ContentType},
		{"compressed", post(ok+js+"Content-Encoding: gzip\r\n", good), 415, api.ContentType},
		{"body-one-past", post(ok+js, good+strings.Repeat(" ", api.MaxBody+1-len(good))), 413, api.BodyTooLarge},
		{"empty-body", post(ok+js, ""), 400, api.BodyInvalid},
		{"null", post(ok+js, "null"), 400, api.BodyInvalid},
		{"two-documents", post(ok+js, good+good), 400, api.BodyInvalid},
		{"duplicate-name", post(ok+js, strings.TrimSuffix(good, "}")+`,"reason":"other"}`), 400, api.BodyInvalid},
		{"duplicate-name-by-escape", post(ok+js, strings.TrimSuffix(good, "}")+`,"\u0072eason":"other"}`), 400, api.BodyInvalid},
		{"name-in-another-case", post(ok+js, strings.Replace(good, "expected_digest", "Expected_Digest", 1)), 400, api.BodyInvalid},
		{"unknown-member", post(ok+js, strings.TrimSuffix(good, "}")+`,"by":"bob"}`), 400, api.BodyInvalid},
		{"digest-is-a-number", post(ok+js, `{"expected_digest":1}`), 400, api.BodyInvalid},
		{"reason-is-an-object", post(ok+js, strings.Replace(good, `"yes"`, `{}`, 1)), 400, api.BodyInvalid},
		{"lone-surrogate", post(ok+js, strings.Replace(good, "yes", `\ud800`, 1)), 400, api.BodyInvalid},
		{"not-utf-8", post(ok+js, strings.Replace(good, "yes", "\xff", 1)), 400, api.BodyInvalid},
		{"byte-order-mark", post(ok+js, "\ufeff"+good), 400, api.BodyInvalid},
		{"no-token", strings.Replace(post(ok+js, good), "Authorization: Bearer #\r\n", "", 1), 401, api.TokenMissing},
		{"token-of-nobody", strings.Replace(post(ok+js, good), "#", "pgfsm_aaaaaaaaaaaaaaaa_"+strings.Repeat("A", 43), 1), 401, "token_refused"},
		{"token-of-a-megabyte", strings.Replace(post(ok+js, good), "#", strings.Repeat("A", 15<<10), 1), 401, "token_refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer("@", q.RunID, "#", d.token(ledger.RoleApprover, alice)).Replace(c.text)
			w := dial(t, serves(t, d.handler, api.Limits{}))
			w.writes(text)
			got := w.reads()
			got.wantCode(t, c.status, c.code)
			if c.code != "" {
				for _, name := range []string{"Cache-Control", "Content-Security-Policy", "X-Content-Type-Options"} {
					if got.header.Get(name) == "" {
						t.Errorf("no %s", name)
					}
				}
			}
			if got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Set-Cookie") != "" {
				t.Errorf("headers = %v", got.header)
			}
		})
	}
	if n := len(d.Votes(q.RunID)); n != 0 {
		t.Errorf("%d votes are recorded, want none", n)
	}
}

// A body that is said to be shorter than it is, or in chunks and of a length, does not become another call.
func TestNothingIsSmuggled(t *testing.T) {
	d := newFixture(t)
	q := d.Hold(1)
	token := d.token(ledger.RoleApprover, alice)
	inner := fmt.Sprintf("POST /approve/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		q.RunID, here, token, len(ballot(q, "x")), ballot(q, "x"))
	for name, head := range map[string]string{ // in any order: each has its own connection
		"chunked-and-length": "POST /deny/@ HTTP/1.1\r\nHost: " + here + "\r\nContent-Type: application/json\r\n" +
			fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(inner)+5),
		"body-of-a-refused-get": "GET /pending HTTP/1.1\r\nHost: " + here + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(inner)),
		"too-large-a-body":      "POST /deny/@ HTTP/1.1\r\nHost: " + here + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", 100<<10),
	} {
		t.Run(name, func(t *testing.T) {
			w := dial(t, serves(t, d.handler, api.Limits{Read: time.Second}))
			w.writes(strings.ReplaceAll(head, "@", q.RunID) + inner)
			if got := w.reads(); got.status < 400 {
				t.Errorf("status = %d, want a refusal", got.status)
			}
			w.closed()
		})
	}
	if n := len(d.Votes(q.RunID)); n != 0 {
		t.Errorf("%d votes are recorded, want none", n)
	}
}

// What is good goes through the same way, so that the table above refuses for its reasons.
func TestGoodCallsOnTheWire(t *testing.T) {
	d := newFixture(t)
	token := d.token(ledger.RoleApprover, alice)
	for name, head := range map[string]string{ // in any order: each has its own request
		"plain":             "Host: " + here + "\r\n",
		"own-origin":        "Host: " + here + "\r\nOrigin: http://" + here + "\r\nSec-Fetch-Site: same-origin\r\n",
		"name-of-the-proxy": "Host: approvals.example.com\r\nOrigin: https://approvals.example.com\r\n",
		"charset":           "Host: " + here + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			q := d.Hold(1)
			body := ballot(q, "yes")
			if name == "plain" {
				body += strings.Repeat(" ", api.MaxBody-len(body)) // as large as it may be
			}
			kind := "application/json"
			if name == "charset" {
				kind += "; charset=UTF-8"
			}
			w := dial(t, serves(t, d.handler, api.Limits{}))
			w.writes(fmt.Sprintf("POST /approve/%s HTTP/1.1\r\n%sAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
				q.RunID, head, token, kind, len(body), body))
			w.reads().wantCode(t, 200, "")
		})
	}
}
