package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/policy/visible"
	"pgfsm/safefile"
)

const (
	filePrefix = "checkpoint-" // before the size, in the name of a file
	fileMode   = 0o644         // a checkpoint is public
	dirMode    = 0o755
)

// A Writer writes signed checkpoints of a growing log into a folder, as checkpoint-SIZE. It signs nothing that does not contain the last
// checkpoint in the folder.
type Writer struct {
	Dir     string
	Every   time.Duration
	Signers []note.Signer
	// View calls do with the state of the log and its tree.
	View func(ctx context.Context, do func(Checkpoint, tlog.HashReader) error) error
	Log  *slog.Logger
}

// Run writes a checkpoint now and at each interval, if the log has grown, until ctx is done.
func (w *Writer) Run(ctx context.Context) {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if err := w.Write(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error("no checkpoint was written", "dir", visible.Text(w.Dir), "error", visible.Text(err.Error()))
		}
		select {
		case <-ctx.Done():
			return
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
		if err == nil {
			err = os.MkdirAll(w.Dir, dirMode)
		}
		if err != nil {
			return err
		}
		path := filepath.Join(w.Dir, filePrefix+strconv.FormatInt(c.Size, 10))
		return renameio.WriteFile(path, signed, fileMode, renameio.WithTempDir(w.Dir))
	})
}

// Last returns the largest checkpoint in a folder of a [Writer]; zero if there is none.
func Last(dir string) (c Checkpoint, err error) {
	files, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	var size int64
	for _, f := range files {
		if text, found := strings.CutPrefix(f.Name(), filePrefix); found {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
				size = max(size, n)
			}
		}
	}
	if size == 0 {
		return c, nil
	}
	path := filepath.Join(dir, filePrefix+strconv.FormatInt(size, 10))
	signed, _, err := safefile.Read(path)
	if err != nil {
		return c, err
	}
	if c, err = Read(signed); err == nil && c.Size != size {
		err = fmt.Errorf("%s is a checkpoint of %d entries", path, c.Size)
	}
	return c, err
}
