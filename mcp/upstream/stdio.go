package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/policy/secret"
)

// stdioTransport runs a server as a child process and speaks newline-delimited JSON-RPC with it (MCP 2025-11-25,
// transports, stdio). It is our own because the SDK's leaves process groups, the environment, stderr and the strictness
// of messages to others.
type stdioTransport struct{ session *session }

func (t *stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	c, err := startChild(t.session.server)
	if err != nil {
		return nil, t.session.fail(CodeUnreachable, "its command does not start: %v", err)
	}
	context.AfterFunc(t.session.ctx, c.kill)
	return &stdioConn{session: t.session, child: c, in: bufio.NewReader(c.stdout)}, nil
}

type stdioConn struct {
	session *session
	child   *child
	in      *bufio.Reader

	mu sync.Mutex // one frame at a time
}

func (c *stdioConn) SessionID() string { return "" }

func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := readLine(c.in, c.session.limits.frame())
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, c.session.tooLarge()
		case err != nil:
			return nil, c.session.fail(CodeDied, "%s", c.child.obituary(c.session.secrets))
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		if err := c.session.inspect(line, 0); err != nil {
			return nil, err
		}
		return jsonrpc.DecodeMessage(line)
	}
}

func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	frame = append(frame, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	var call *permit
	if req, ok := msg.(*jsonrpc.Request); ok && req.Method == methodCall {
		call = permitOf(ctx)
		if err := call.send(); err != nil {
			return c.session.fail(CodePermit, "the pipe refused to send %s: %v", methodCall, err)
		}
		call.touched.Store(true)
	}
	n, err := c.child.write(ctx, frame)
	if n == 0 && err != nil && call != nil {
		call.touched.Store(false)
	}
	switch {
	case err == nil || n == 0 && ctx.Err() != nil:
		return err
	case ctx.Err() != nil: // half a frame: nothing sensible can follow it
		return c.session.fail(CodeTimeout, "it did not read a message within the time allowed")
	default:
		return c.session.fail(CodeDied, "%s", c.child.obituary(c.session.secrets))
	}
}

func (c *stdioConn) Close() error { return c.child.end() }

// A tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool // something stood before them
}

// maxTail is how much of a child's stderr is kept. It is more than is shown, so that a secret of several lines that ends
// in the last one is there from its beginning.
const maxTail = 128 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = t.cut || len(t.kept)+len(p) > maxTail
	t.kept = append(t.kept, p[max(0, len(p)-maxTail):]...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(p), nil
}

// lastLine is the last line that is not blank, with secrets masked: before it is cut out, for they may have several
// lines. Of a line whose beginning is not kept nothing is told.
func (t *tail) lastLine(secrets *secret.Masker) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := bytes.TrimSpace(secrets.Bytes(t.kept))
	begin := bytes.LastIndexByte(kept, '\n') + 1
	if begin == 0 && t.cut {
		return ""
	}
	return string(bytes.TrimSpace(kept[begin:]))
}

// obituary says how the child ended, with the last line of its stderr.
func (c *child) obituary(secrets *secret.Masker) string {
	how := "it closed its output"
	if waitFor(c.exited, c.grace) {
		how = fmt.Sprintf("its process ended (%v)", c.cmd.ProcessState)
	}
	if words := c.stderr.lastLine(secrets); words != "" {
		how += ", its last words: " + words
	}
	return how
}

// waitFor reports whether done was closed within d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
