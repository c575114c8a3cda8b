package ratelimit

// Callers counts the callers whose use the limiter remembers.
func (l *Limiter) Callers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers)
}
