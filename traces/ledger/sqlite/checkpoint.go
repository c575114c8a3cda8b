package sqlite

import (
	"context"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkpointIdle is after how much time without a write the write-ahead log is moved into the file.
	checkpointIdle = time.Second
	// checkpointFrames is after how many pages it is moved under load. It is SQLite's own default.
	checkpointFrames = 1000
	// restartFrames is how long the log grows under load, in pages (16 MiB), before writers have to wait for a moment, so that it begins
	// again: it only can when all of it was moved and nobody reads from it.
	restartFrames = 4096
	// maxLog is how many bytes the log may have before a writer moves it itself: then the checkpointer is too slow, or somebody reads an old state. It is a
	// multiple of the log's usual length.
	maxLog = 64 << 20
	// keptLog is how many bytes of the log's file are kept when it begins again: overwriting is faster than growing.
	keptLog = restartFrames * 4096
	// checkpointCommits and checkpointBytes are how much is written before the log's length is looked at.
	checkpointCommits = 16
	checkpointBytes   = 1 << 20
	// restartWait is how long writers wait at most for readers of an old state.
	restartWait = 100 * time.Millisecond
)

// A checkpointer moves the write-ahead log into the file, beside the commits and not in them.
type checkpointer struct {
	done atomic.Int64
	max  int64 // maxLog, except in tests

	commits, bytes int           // since the log's length was looked at; guarded by the writer's lock
	look           chan struct{} // much was written
	dirty          chan struct{} // something was written
	ended          sync.WaitGroup
}

func (p *checkpointer) start(s *Store) {
	p.look, p.dirty = make(chan struct{}, 1), make(chan struct{}, 1)
	p.ended.Go(func() { p.run(s) })
}

// stop waits until nothing is moved any more. The store is closed.
func (p *checkpointer) stop() { p.ended.Wait() }

// wrote is called after each commit, with the writer's lock held.
func (p *checkpointer) wrote(s *Store, bytes int) {
	p.commits, p.bytes = p.commits+1, p.bytes+bytes
	signal(p.dirty)
	if p.commits < checkpointCommits && p.bytes < checkpointBytes {
		return
	}
	p.commits, p.bytes = 0, 0
	signal(p.look)
	if info, err := os.Stat(s.path + "-wal"); err != nil || info.Size() <= p.max {
		return
	}
	// If this fails, all commits are still durable, and the next checkpoint tries again.
	if _, _, err := checkpoint(s.writer, "PASSIVE"); err == nil {
		p.done.Add(1)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known already
	}
}

func (p *checkpointer) run(s *Store) {
	idle := time.NewTimer(checkpointIdle)
	defer idle.Stop()
	var c *conn
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	atRestart := int64(restartFrames)
	for {
		quiet := false
		select {
		case <-s.closed:
			return
		case <-p.dirty:
			idle.Reset(checkpointIdle)
			continue
		case <-p.look:
		case <-idle.C:
			quiet = true
		}
		if c == nil {
			var err error
			if c, err = dial(context.Background(), s.path, restartWait, url.Values{"mode": {"rw"}, "_synchronous": {"FULL"}}); err != nil {
				continue // a writer returns the error
			}
		}
		atRestart = p.move(s, c, quiet, atRestart)
	}
}

// move moves what can be moved, if it is enough, and returns at which length of the log writers shall wait next.
func (p *checkpointer) move(s *Store, c *conn, quiet bool, atRestart int64) int64 {
	length, moved, err := checkpoint(c, "NOOP")
	if err != nil || length-moved == 0 || !quiet && length-moved < checkpointFrames {
		return atRestart
	}
	if length, _, err = checkpoint(c, "PASSIVE"); err != nil {
		return atRestart
	}
	p.done.Add(1)
	if length < atRestart {
		return restartFrames
	}
	if s.lock(context.Background()) != nil {
		return atRestart
	}
	defer func() { <-s.writing }()
	if length, moved, err = checkpoint(c, "RESTART"); err != nil || moved < length {
		return length + checkpointFrames // a reader has an old state: do not try again at once
	}
	p.done.Add(1)
	return restartFrames
}

// checkpoint returns the pages in the log, and how many of them are in the file.
func checkpoint(c *conn, mode string) (length, moved int64, err error) {
	r, err := c.rows("PRAGMA wal_checkpoint(" + mode + ")")
	if err != nil {
		return 0, 0, err
	}
	defer r.close()
	if _, err := r.next(); err != nil {
		return 0, 0, err
	}
	_, length, moved = r.int64(), r.int64(), r.int64()
	return length, moved, r.err
}
