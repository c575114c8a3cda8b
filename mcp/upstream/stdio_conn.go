package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"time"
)

// A stdioConn speaks with a child process over its stdin and stdout, one message a line.
type stdioConn struct {
	duplex
	child   *child
	writing chan struct{} // held while a frame is written: one at a time
	junk    allowance     // for lines that are not messages
}

// openPipe starts the server.
func (l *Link) openPipe() *fault {
	child, err := startChild(l.up.server)
	if err != nil {
		return l.fail(CodeUnreachable, "its command does not start: %v", err)
	}
	c := &stdioConn{duplex: newDuplex(l), child: child, writing: make(chan struct{}, 1)}
	c.send = c.sendFrame
	l.conn = c
	l.tasks.run(c.readLines)
	l.tasks.run(c.watchExit)
	return nil
}

// watchExit ends the link when the process has ended. A descendant that left the process group may
// still hold the pipe open.
func (c *stdioConn) watchExit() {
	select {
	case <-c.child.exited:
	case <-c.l.ctx.Done():
		return
	}
	if !waitFor(c.l.ctx.Done(), c.child.grace) { // until then its last messages are read
		c.l.fail(CodeDied, "%s", c.child.exitReason(c.l.secrets))
	}
}

// readLines reads to the end of the stream.
func (c *stdioConn) readLines() {
	stdout, hold := bufio.NewReader(c.child.stdout), c.messageHolder()
	defer c.memory.Release()

	for {
		if hold(0) != nil {
			return
		}

		line, err := readLine(stdout, c.l.maxFrame, hold) // a line without an end is not a message
		_ = hold(complete)
		begin := bytes.TrimSpace(line)

		switch {
		case errors.Is(err, bufio.ErrTooLong):
			c.l.endWith(c.l.tooLarge())
			return
		case err != nil:
			if c.l.ctx.Err() == nil { // otherwise the link has closed the pipe
				c.l.fail(CodeDied, "%s", c.child.exitReason(c.l.secrets))
			}
			return
		case len(begin) == 0:
			if c.l.countUnasked() != nil {
				return
			}
			continue
		case begin[0] != '{':
			if c.skipLine(begin) != nil {
				return
			}
			continue
		}

		if c.receiveMessage(line) != nil {
			return
		}
	}
}

// skipLine counts a line that does not begin like a message: many servers write a
// greeting or a log to standard output. The first line is logged.
func (c *stdioConn) skipLine(line []byte) *fault {
	up := c.l.up
	up.junk.Do(func() {
		if log := c.l.u.common.log.Load(); log != nil {
			log.Warn("a server wrote a line to standard output that is no message; the gateway skips such lines. The server must write its log to standard error",
				"server", up.server.Name, "line", presentableText(string(line), c.l.secrets))
		}
	})
	if c.junk.countMessage(time.Now(), maxJunk) {
		return nil
	}
	return c.l.fail(CodeProtocol, "it wrote more than %d lines in %s to standard output that are no messages, such as %q: it must write its log to standard error",
		maxJunk, unaskedWindow, cutLabel(string(line), c.l.secrets))
}

// sendFrame writes one message as a line, if it may leave.
func (c *stdioConn) sendFrame(ctx context.Context, frame []byte, p *permit) *fault {
	// Wait until no other frame is being written, and check only then what may have changed.
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
	case <-c.l.ctx.Done():
	}

	if f := c.l.fault(); f != nil {
		return f
	}
	if ctx.Err() != nil {
		return &fault{code: contextCode(ctx), reason: "there was no time to send it"}
	}
	if f := c.l.authorizeSend(frame, p); f != nil {
		return f
	}

	if p != nil {
		p.touched.Store(true)
	}

	// In one write, so that the child never sees half of a line.
	n, err := c.child.writeFrame(ctx, append(oneLine(frame), '\n'))
	if err == nil {
		return nil
	}
	if n == 0 && p != nil {
		p.touched.Store(false)
	}

	switch {
	case n == 0 && ctx.Err() != nil:
		return &fault{code: contextCode(ctx), reason: "it did not read a message within the time allowed"}
	case ctx.Err() != nil: // half a message was written: no other can follow it
		return c.l.fail(CodeTimeout, "it did not read a message within the time allowed")
	case c.l.ctx.Err() != nil:
		return c.l.fault()
	default:
		return c.l.fail(CodeDied, "%s", c.child.exitReason(c.l.secrets))
	}
}

func (c *stdioConn) close(polite bool) {
	if polite {
		c.child.shutDown()
	}
	c.child.kill()
	waitFor(c.child.exited, c.child.grace)
}

// oneLine puts a message on one line, in place. A message contains the client's bytes, and JSON
// allows line breaks between tokens. A child would read the text after a line break as another
// message, such as a tools/call that no gate has seen. Some children also end a line at a carriage
// return. JSON strings contain neither.
func oneLine(frame []byte) []byte {
	for i, c := range frame {
		if c == '\n' || c == '\r' {
			frame[i] = ' '
		}
	}
	return frame
}

// writeFrame writes frame until ctx ends, because a child may not read.
func (c *child) writeFrame(ctx context.Context, frame []byte) (int, error) {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		c.stdin.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.stdin.Write(frame)
	if !stop() {
		<-expired
		c.stdin.SetWriteDeadline(time.Time{})
	}
	return n, err
}
