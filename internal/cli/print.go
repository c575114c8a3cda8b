package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/schollz/progressbar/v3"

	"pgfsm/internal/visible"
)

// SchemaVersion is the version of every --json document. Members may be added under the same version; readers ignore what they
// do not know.
const SchemaVersion = 1

// PrintJSON prints one document, indented for people and escaped for terminals.
func PrintJSON(w io.Writer, v any) error {
	// A path need not be UTF-8; its document must be printed all the same.
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", visible.JSON(b))
	return err
}

// Count writes a number of things, of one kind or in the plural.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// NewBar makes a progress bar for n steps. It shows nothing unless the stream is a terminal and there are several steps.
func NewBar(stream io.Writer, what string, n int) *progressbar.ProgressBar {
	f, ok := stream.(*os.File)
	if !ok || !IsTerminal(f) || n < 2 {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(f), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowCount(), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(50*time.Millisecond))
}
