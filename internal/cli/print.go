package cli

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/schollz/progressbar/v3"

	"pgfsm/internal/visible"
)

// SchemaVersion is the version of every --json document. Members may be added under the same
// version; readers ignore what they do not know.
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

// Object is a JSON object: names and values in turn, which keep their order.
type Object []any

// Document is an object that begins with the schema version.
func Document(pairs ...any) Object { return append(Object{"schema_version", SchemaVersion}, pairs...) }

// MarshalJSONTo writes the object.
func (o Object) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, value := range o {
		if err := json.MarshalEncode(e, value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// NewTable aligns columns, which tabs separate.
func NewTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// Count writes a number of things, of one kind or in the plural. Without a plural, it adds an s.
func Count(n any, one string, many ...string) string {
	if number := fmt.Sprint(n); number != "1" {
		return number + " " + append(many, one+"s")[0]
	}
	return "1 " + one
}

// NewBar makes a progress bar for n steps. It shows nothing unless the stream is a terminal and
// there are several steps.
func NewBar(stream io.Writer, what string, n int) *progressbar.ProgressBar {
	f, ok := stream.(*os.File)
	if !ok || !IsTerminal(f) || n < 2 {
		return progressbar.DefaultSilent(int64(n))
	}
	return progressbar.NewOptions(n, progressbar.OptionSetWriter(f), progressbar.OptionClearOnFinish(),
		progressbar.OptionShowCount(), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(50*time.Millisecond))
}
