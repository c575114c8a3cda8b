package tail

import "golang.org/x/sys/unix"

// flush is Sync without the times of the file: they would be a second block to write for each record.
func (o opened) flush() (err error) {
	if refused := o.raw.Control(func(fd uintptr) {
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Fdatasync(int(fd))
		}
	}); refused != nil {
		return refused
	}
	return err
}
