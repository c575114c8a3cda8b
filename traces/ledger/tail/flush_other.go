//go:build !linux

package tail

// flush writes the times of the file, too: where it can be had without them, the drive may keep what it was given in
// its memory.
func (o opened) flush() error { return o.Sync() }
