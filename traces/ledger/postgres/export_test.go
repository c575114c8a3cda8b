package postgres

import "time"

// SetAhead is what a change of this machine's clock does to a store.
func (s *Store) SetAhead(by time.Duration) { s.ahead.Store(int64(by)) }
