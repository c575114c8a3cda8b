package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pgfsm/internal/secret"
	"pgfsm/internal/visible"
)

// Stable codes of [Listing] and [Returned]. An empty code means that nothing went wrong.
const (
	// No connection, no session, or an HTTP status other than success.
	CodeUnreachable = "server_unreachable"
	CodeTimeout     = "server_timeout" // no answer within the time allowed
	// The server sent something that is not MCP, or has more than one reading.
	CodeProtocol = "server_protocol"
	CodeDied     = "server_died"       // the child process ended or closed its output
	CodeCatalog  = "catalog_too_large" // too many pages, tools or bytes in tools/list
	CodeRedirect = "redirect_refused"  // an HTTP redirect
	// A request, or an SSE endpoint, outside the configured origin.
	CodeOrigin    = "origin_refused"
	CodeCancelled = "cancelled"      // the caller's context ended
	CodeClosed    = "closed"         // Close was called
	CodeUnknown   = "server_unknown" // no server of this name is configured
	// The tool belongs to a coding agent, which executes it itself.
	CodeClientTool = "client_tool"
	CodeResult     = "result_too_large" // the result exceeds Limits.ResultBytes
	CodeRPC        = "rpc_error"        // the server answered the call with a JSON-RPC error
	// The call cannot be sent: no run id, no tool, arguments not canonical.
	CodeInvalid = "call_invalid"
	CodeChanged = "tool_definition_changed" // the server has announced other tools since they were listed
	CodeLinks   = "too_many_sessions"       // Limits.Links or Limits.ServerSessions is reached
	CodePermit  = "permit_refused"          // the guarded connection found no permit for the bytes
	// The server is used with people's own accounts, and the link has none; or the server refused the account.
	CodeCredentialsNeeded  = "credentials_needed"
	CodeCredentialsRefused = "credentials_refused"
	codeFrame              = "message_too_large" // internal: reported as CodeResult or CodeCatalog
)

// Effects of a call, see [Returned].
const (
	EffectNotSent = "not_sent" // no byte of the call reached the server
	EffectUnknown = "unknown"  // it may have run
	EffectDone    = "done"     // the server answered it with a result
)

// maxReason is the length of a reason in bytes; servers choose part of the text.
const maxReason = 400

// A fault is the reason for which a link has ended or a request has failed. A link keeps its first
// fault. A later one replaces it only if the first was a lost connection, which says less.
type fault struct {
	code, reason string
	lost         bool
	calls        int // number of requests under way when the fault happened
	status       int // HTTP status, if not a success
}

func (f *fault) Error() string { return f.code + ": " + f.reason }

// fail ends the link, unless it has ended already, and returns the fault that ended it.
func (l *Link) fail(code, format string, args ...any) *fault {
	return l.endWith(&fault{code: code, reason: fmt.Sprintf(format, args...)})
}

// endWith ends the link as fail does, with f as the fault. It does not change f, which may be the
// fault that ended the link.
func (l *Link) endWith(f *fault) *fault {
	cause := &fault{
		code:   f.code,
		reason: presentableText(f.reason, l.secrets),
		lost:   f.lost,
		calls:  int(l.calls.Load()),
	}
	l.faultMu.Lock()
	if l.firstFault == nil || l.firstFault.lost && !f.lost {
		l.firstFault = cause
	}
	f = l.firstFault
	l.faultMu.Unlock()
	l.cancel()
	return f
}

// timeoutFault returns the fault for a server that did not finish a task within the time of ctx. A
// child may still download its program, and say so on stderr.
func (l *Link) timeoutFault(ctx context.Context, task string) *fault {
	limit := "the time allowed"
	if errors.Is(context.Cause(ctx), errConnectTimeout) {
		limit = fmt.Sprintf("connect_timeout (%s)", l.up.server.ConnectTimeout)
	}
	reason := fmt.Sprintf("it did not %s within %s", task, limit)
	if c, ok := l.conn.(*stdioConn); ok {
		if line := c.child.stderr.lastLine(l.secrets); line != "" {
			reason += "; the last line on its standard error: " + line
		}
	}
	return &fault{code: CodeTimeout, reason: presentableText(reason, l.secrets)}
}

func (l *Link) fault() *fault {
	l.faultMu.Lock()
	defer l.faultMu.Unlock()
	return l.firstFault
}

// countUnasked counts an unsolicited message. A server that sends too many of them loses its
// session.
func (l *Link) countUnasked() *fault {
	limit := l.u.limits.Unasked
	if l.allowance.countMessage(time.Now(), limit) {
		return nil
	}
	return l.fail(CodeProtocol, "it sent more than %d messages in %s that nobody asked for", limit, unaskedWindow)
}

// tooLarge returns the fault for a message of the server that exceeds the size limit. It does not
// end the link.
func (l *Link) tooLarge() *fault {
	return &fault{code: codeFrame, reason: fmt.Sprintf("it sent a message of more than %d bytes", l.maxFrame)}
}

// presentableText makes text that contains a server's words safe to print and to keep. It masks
// secrets, escapes every character that is not printable (control, ANSI, bidi), and bounds the
// length, in this order. The words must be whole, because the masker does not find half a secret.
func presentableText(text string, secrets *secret.Masker) string {
	return visible.Text(visible.Cut(strings.TrimSpace(secrets.String(text)), maxReason, "…"))
}

// maxLabel is the length in bytes of a server's own name and version.
const maxLabel = 200

// cutLabel masks secrets in s and cuts it after at most maxLabel bytes, at the end of a character.
func cutLabel(s string, secrets *secret.Masker) string {
	return visible.Cut(secrets.String(s), maxLabel, "")
}
