package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"pgfsm/mcp/wire"
)

// ServeStdio serves one client that all servers are open to, whose messages come from in and go to out, one a line. It returns when in
// ends or ctx is done, and what was under way then is answered, or was cut off after some time. The error says what else ended it.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, from Identity) error {
	var frame []byte
	p := g.newPipe(context.WithoutCancel(ctx), from, g.every, func(message []byte) error {
		frame = appendLine(frame[:0], message)
		_, err := out.Write(frame)
		if cap(frame) > maxFrame {
			frame = nil
		}
		return err
	})
	p.alone = true
	lines := make(chan inLine)
	go readLines(in, g.options.Limits.BodyBytes, lines, p.ctx.Done())
	var err error
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-p.ctx.Done(): // out is broken, or the session was ended for not reading it
			over, err = true, errGone
		case l := <-lines:
			if over = l.err != nil; !over {
				p.line(l)
			} else if !errors.Is(l.err, io.EOF) {
				err = l.err
			}
		}
	}
	p.settle()
	g.errands.gone(p)
	return err
}

// settle lets what is under way be answered, for some time. Then it is cut off; a client who does not read its answers is not waited for.
func (p *pipe) settle() {
	timer := time.NewTimer(p.pace.grace)
	defer timer.Stop()
	settled := p.finish()
	select {
	case <-settled:
	case <-p.ctx.Done():
	case <-timer.C:
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.close()
		<-settled
	}()
	timer.Reset(p.pace.grace)
	select {
	case <-closed:
	case <-timer.C:
	}
}

// maxFrame bounds the memory that a client's output keeps between two messages.
const maxFrame = 64 << 10

// An inLine is one that was read; err comes behind the last one.
type inLine struct {
	text  []byte
	large bool // it was larger than allowed, and is not here
	err   error
}

// readLines reads until in ends or nobody listens any more.
func readLines(in io.Reader, limit int, to chan<- inLine, stop <-chan struct{}) {
	r := bufio.NewReader(in)
	for {
		l := readLine(r, limit)
		if l.err == nil && len(l.text) == 0 && !l.large {
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

// readLine reads one line without its end. The last one may lack its line feed.
func readLine(r *bufio.Reader, limit int) (l inLine) {
	for {
		part, err := r.ReadSlice('\n')
		l.large = l.large || len(l.text)+len(trim(part)) > limit
		if l.large {
			l.text = nil
		} else {
			l.text = append(l.text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if l.text = trim(l.text); err != nil && len(l.text) == 0 && !l.large {
			l.err = err
		}
		return l
	}
}

// trim takes the end of a line off.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// line takes one line.
func (p *pipe) line(l inLine) {
	var m wire.Message
	var f *refusal
	var fault *wire.Fault
	if l.large {
		f = refuse(0, refusedLarge, "the message is larger than allowed")
	} else {
		var err error
		if m, err = wire.Read(l.text); errors.As(err, &fault) {
			m.ID = fault.ID
			f = &refusal{code: fault.Code, reason: refusedMessage, message: fault.Reason}
		} else {
			f = p.take(m, func() {})
		}
	}
	if f != nil && (m.ID != nil || fault != nil || l.large) {
		_ = p.Send(f.body(m.ID)) // the pipe remembers that the client is gone
	}
}
