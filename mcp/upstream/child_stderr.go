package upstream

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"pgfsm/internal/secret"
)

// A tail keeps the last bytes of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
	cut bool // earlier bytes were dropped
}

// maxTail bounds the kept stderr. It exceeds the length of the line that is
// shown, so that a secret of several lines is complete and can be masked.
const maxTail = 128 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = t.cut || len(t.end)+len(p) > maxTail
	t.end = append(t.end, p[max(0, len(p)-maxTail):]...)
	t.end = t.end[max(0, len(t.end)-maxTail):]
	return len(p), nil
}

// lastLine returns the last line that is not blank. Secrets are masked before the line is cut out,
// because they may have several lines. It returns "" if the beginning of the line was dropped.
func (t *tail) lastLine(secrets *secret.Masker) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(secrets.Bytes(t.end))
	begin := bytes.LastIndexByte(text, '\n') + 1
	if begin == 0 && t.cut {
		return ""
	}
	return string(bytes.TrimSpace(text[begin:]))
}

// exitReason says how the child ended, and quotes the last line of its stderr.
func (c *child) exitReason(secrets *secret.Masker) string {
	reason := "it closed its output"
	if waitFor(c.exited, c.grace) {
		reason = fmt.Sprintf("its process ended (%v)", c.cmd.ProcessState)
	}
	if line := c.stderr.lastLine(secrets); line != "" {
		reason += ", its last words: " + line
	}
	return reason
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
