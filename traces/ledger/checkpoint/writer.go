package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
)

const (
	filePrefix = "checkpoint-" // precedes the size in a file's name
	fileMode   = 0o644         // a checkpoint is public
	dirMode    = 0o755
)

// A Writer writes signed checkpoints of a growing log into a folder, as checkpoint-SIZE. It signs
// only a state that contains the last checkpoint in the folder.
type Writer struct {
	Dir     string
	Every   time.Duration
	Signers []note.Signer
	// View calls do with the state of the log and its tree.
	View func(ctx context.Context, do func(Checkpoint, tlog.HashReader) error) error
	Log  *slog.Logger
}

// Run writes a checkpoint now and at each interval, if the log has grown, until ctx is done. It
// returns [ErrInconsistent] as soon as the log does not contain the last checkpoint in the folder.
// It logs other errors and tries again.
func (w *Writer) Run(ctx context.Context) error {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		err := w.Write(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrInconsistent):
			return err
		case err != nil:
			w.Log.Error("no checkpoint was written", "dir", visible.Text(w.Dir), "error", visible.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Write writes a checkpoint if the log has grown since the last one in the folder.
func (w *Writer) Write(ctx context.Context) error {
	last, err := Last(w.Dir)
	if err != nil {
		return err
	}
	return w.View(ctx, func(c Checkpoint, tree tlog.HashReader) error {
		if last.Size > 0 {
			if err := last.Contained(c, tree); err != nil || last.Size == c.Size {
				return err
			}
		}
		signed, err := Sign(c, w.Signers...)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(w.Dir, dirMode); err != nil {
			return err
		}
		path := filepath.Join(w.Dir, filePrefix+strconv.FormatInt(c.Size, 10))
		return safefile.Write(path, signed, fileMode)
	})
}

// Last returns the largest checkpoint in a folder of a [Writer]; zero if there is none. It verifies
// no signature.
func Last(dir string) (c Checkpoint, err error) {
	files, err := Files(dir)
	if err != nil || len(files) == 0 {
		return c, err
	}
	path := files[len(files)-1]
	signed, _, err := safefile.Read(path)
	if err != nil {
		return c, err
	}
	if c, err = Read(signed); err != nil {
		return c, err
	}
	if filepath.Base(path) != filePrefix+strconv.FormatInt(c.Size, 10) {
		return c, fmt.Errorf("%s is a checkpoint of %d entries", path, c.Size)
	}
	return c, nil
}

// Files returns the files of the checkpoints in a folder, smallest first. A missing folder has
// none.
func Files(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, f := range files {
		if text, found := strings.CutPrefix(f.Name(), filePrefix); found {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && strconv.FormatInt(n, 10) == text {
				sizes = append(sizes, n)
			}
		}
	}
	slices.Sort(sizes)
	paths := make([]string, len(sizes))
	for i, n := range sizes {
		paths[i] = filepath.Join(dir, filePrefix+strconv.FormatInt(n, 10))
	}
	return paths, nil
}
