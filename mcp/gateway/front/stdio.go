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

// ServeStdio serves one client with all servers. The client's messages come on in, one a line, and answers go to out. It returns when in
// ends or ctx is done, after the requests under way were answered or their time was over. The error is what else ended it.
func (f *Front) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, client session.Identity) error {
	c := f.newConnection(context.WithoutCancel(ctx), client, "", func(message []byte) error {
		_, err := out.Write(appendLine(nil, message))
		return err
	})
	c.stateless = true

	lines := make(chan inputLine)
	go readLines(in, f.table.Limits.BodyBytes, lines, c.ctx.Done())
	defer c.shutdown()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.ctx.Done(): // out is broken, or the client did not read it
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

// shutdown waits until the requests under way are answered, for some time, and ends the others. It does not wait for a client that does
// not read its answers.
func (c *connection) shutdown() {
	timer := time.NewTimer(c.front.timeouts.shutdown)
	defer timer.Stop()
	close(c.closing)

	idle := make(chan struct{})
	go func() {
		defer close(idle)
		c.running.Wait()
	}()
	select {
	case <-idle:
	case <-c.ctx.Done():
	case <-timer.C:
	}

	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.close()
		<-idle
	}()
	timer.Reset(c.front.timeouts.shutdown)
	select {
	case <-closed:
	case <-timer.C:
	}
}

// An inputLine is one line of input; err follows the last line.
type inputLine struct {
	text     []byte
	tooLarge *wire.IDFinder // in place of a text that is larger than allowed
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
			_, _ = l.tooLarge.Write(l.text) // it returns no error
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

// acceptLine takes the message of one line and answers a refusal.
func (c *connection) acceptLine(l inputLine) {
	var m wire.Message
	var refused *refusal
	var fault *wire.Fault
	if l.tooLarge != nil {
		m.ID = l.tooLarge.ID()
		refused = tooLarge(c.front.table.Limits.BodyBytes)
	} else {
		var err error
		if m, err = wire.Read(l.text); errors.As(err, &fault) {
			m.ID = fault.ID
			refused = invalidMessage(fault.Code, fault.Reason)
		} else if m.Request() { // only what has an answer can be refused
			refused = c.front.limit(c.from, nil)
		}
		if refused == nil {
			refused = c.accept(m, nil, nil, func() {})
		}
	}

	if refused != nil && (m.ID != nil || fault != nil || l.tooLarge != nil) {
		_ = c.Send(refused.body(m.ID)) // the connection remembers the error
	}
}
