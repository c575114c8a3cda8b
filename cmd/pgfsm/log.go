package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"pgfsm/internal/visible"
)

// logOptions are the flags for a service's log.
type logOptions struct{ format string }

const (
	logText = "text"
	logJSON = "json"
)

func (o *logOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.format, "log-format", logText, "how to log on standard error: text (key=value) or json (an object per line)")
}

// open returns the log. A JSON log receives warnings, too.
func (o *logOptions) open(w *world, level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch o.format {
	case logText:
		return slog.New(slog.NewTextHandler(w.stderr, options)), nil
	case logJSON:
		w.log = slog.New(slog.NewJSONHandler(w.stderr, options))
		return w.log, nil
	}
	return nil, fmt.Errorf("--log-format is %q; give %s or %s", visible.Text(o.format), logText, logJSON)
}
