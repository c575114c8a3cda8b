package front

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// ServeStdio serves one client with all servers. It reads the client's messages from in, one a
// line, and writes answers to out. It returns when in ends or ctx is done, after the requests under
// way were answered or their time was over. Then the front serves no one any more. The error is any
// other cause of the end.
func (f *Front) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, client session.Identity) error {
	c := newConnection(context.WithoutCancel(ctx), f, client, func(message []byte) error {
		_, err := out.Write(appendLine(nil, message))
		return err
	})
	c.stateless = true
	defer c.shutdown()

	lines := make(chan inputLine)
	go readLines(in, f.table.Limits.BodyBytes, lines, c.ctx.Done())

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.ctx.Done(): // out is broken, or the client does not read it
			return errGone
		case l := <-lines:
			switch {
			case l.err == nil:
				c.acceptLine(l)
			case errors.Is(l.err, io.EOF):
				return nil
			default:
				return l.err
			}
		}
	}
}

// shutdown drains the front, and then waits for the requests that were cut off. It does not wait
// for a client that does not read its answers.
func (c *connection) shutdown() {
	within, cancel := context.WithTimeout(c.ctx, c.front.timeouts.shutdown)
	defer cancel()
	_ = c.front.Drain(within) // the client has no answer to what was cut off
	c.cancel()
	select {
	case <-c.front.table.Requests.Stop():
	case <-time.After(c.front.timeouts.shutdown):
	}
}

// An inputLine is one line of input; err follows the last line.
type inputLine struct {
	text     []byte
	tooLarge *wire.IDFinder // replaces a text over the size limit
	err      error
}

// readLines reads lines until in ends or stop is closed.
func readLines(in io.Reader, limit int, to chan<- inputLine, stop <-chan struct{}) {
	r := bufio.NewReader(in)
	for {
		l := readLine(r, limit)
		if l.err == nil && len(l.text) == 0 && l.tooLarge == nil {
			continue
		}
		select {
		case to <- l:
		case <-stop:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads one line without its end. The last line may lack its line feed.
func readLine(r *bufio.Reader, limit int) (l inputLine) {
	for {
		part, err := r.ReadSlice('\n')
		if l.tooLarge == nil && len(l.text)+len(bytes.TrimRight(part, "\r\n")) > limit {
			l.tooLarge = &wire.IDFinder{}
			_, _ = l.tooLarge.Write(l.text) // Write returns no error
			l.text = nil
		}
		if l.tooLarge != nil {
			_, _ = l.tooLarge.Write(part)
		} else {
			l.text = append(l.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.text = bytes.TrimRight(l.text, "\r\n"); err != nil && len(l.text) == 0 && l.tooLarge == nil {
			l.err = err
		}
		return l
	}
}

// acceptLine handles the message of one line and answers it if it is refused.
func (c *connection) acceptLine(l inputLine) {
	if l.tooLarge != nil {
		c.sendRefusal(tooLarge(c.front.table.Limits.BodyBytes), l.tooLarge.ID())
		return
	}
	m, refused := parseMessage(l.text)
	if refused != nil {
		c.sendRefusal(refused, m.ID)
		return
	}
	if m.Request() { // only a message that gets an answer can be refused
		refused = c.front.checkRate(c.from, nil)
	}
	if refused == nil {
		refused = c.handleMessage(&session.Request{Message: m}, func() {})
	}
	if refused != nil && m.ID != nil {
		c.sendRefusal(refused, m.ID)
	}
}

// sendRefusal answers a message that was refused. The id may be nil.
func (c *connection) sendRefusal(f *refusal, id []byte) {
	_ = c.send(f.body(id)) // the connection remembers the error
}
