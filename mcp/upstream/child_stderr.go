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
	mu   sync.Mutex
	kept []byte
	cut  bool // earlier bytes were dropped
}

// maxTail bounds the kept stderr. It exceeds the length of the line that is
// shown, so that a secret of several lines is complete and can be masked.
const maxTail = 128 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = t.cut || len(t.kept)+len(p) > maxTail
	t.kept = append(t.kept, p[max(0, len(p)-maxTail):]...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(p), nil
}

// lastLine returns the last line that is not blank. Secrets are masked before the line is cut out,
// because they may have several lines. It returns "" if the beginning of the line was dropped.
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

// exitReason says how the child ended, and quotes the last line of its stderr.
func (c *child) exitReason(secrets *secret.Masker) string {
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
