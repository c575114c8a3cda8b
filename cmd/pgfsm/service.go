package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"pgfsm/internal/config"
	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
)

// logOptions are the flags for a service's log.
type logOptions struct{ format string }

const (
	logText = "text"
	logJSON = "json"
)

func (o *logOptions) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.format, "log-format", logText,
		"how to log on standard error: text (key=value) or json (an object per line)")
}

// openLog returns the log, and lets several goroutines write to standard error. A JSON log receives
// warnings, too.
func (o *logOptions) openLog(w *world, verbose bool) (*slog.Logger, error) {
	w.stderr = &sharedWriter{to: w.stderr}
	options := &slog.HandlerOptions{}
	if verbose {
		options.Level = slog.LevelDebug
	}
	switch o.format {
	case logText:
		return slog.New(slog.NewTextHandler(w.stderr, options)), nil
	case logJSON:
		w.log = slog.New(slog.NewJSONHandler(w.stderr, options))
		return w.log, nil
	}
	return nil, fmt.Errorf("--log-format is %q; give %s or %s", visible.Text(o.format), logText, logJSON)
}

// notifySystemd tells systemd that this service is ready. When ctx ends, it tells systemd that the
// service stops, unless cancel was called before. Without the variable NOTIFY_SOCKET, which systemd
// sets for units of Type=notify, it does nothing. Servers that pgfsm starts do not inherit the
// variable.
func notifySystemd(ctx context.Context, log *slog.Logger) (cancel func() bool) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("systemd cannot be notified", "state", state, "error", visible.Error(err))
		}
	}
	tell(daemon.SdNotifyReady)
	return context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })
}

// openTLS reads the files of serve.tls. It returns nil if there are none. If changed files cannot
// be used later, it calls report.
func openTLS(files config.TLS, report func(error)) (*web.TLS, error) {
	if files.Cert == "" {
		return nil, nil
	}
	t, err := web.NewTLS(web.TLSFiles(files), report)
	if err != nil {
		return nil, fmt.Errorf("serve.tls: %w", err)
	}
	return t, nil
}

var errNoURL = errors.New("other machines can reach this address: set serve.public_url for the gateway, or serve.admin_url for the admin address")

// openListener opens a listener. An address that other machines can reach needs TLS and a URL.
func openListener(secured *web.TLS, address, url string) (net.Listener, error) {
	if secured == nil {
		return loopback.Listen(address)
	}
	l, err := secured.Listen(address)
	if err != nil {
		return nil, err
	}
	if url == "" && !loopback.Addr(l.Addr()) {
		return nil, errors.Join(errNoURL, l.Close())
	}
	return l, nil
}

// gcPercent replaces the garbage collector's default of 100 for the gateway and the evaluation of
// the gates, unless GOGC is set. Calls leave much garbage beside a small heap. The setting costs
// half as much memory again, and saves a tenth of the time.
const gcPercent = 400

func setGCPercent(w world) {
	if w.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// limitMemory sets the garbage collector's memory limit to nine tenths of the limit of the
// container or service, unless GOMEMLIMIT is set. Without a limit of the container or service, it
// sets none.
func limitMemory(log *slog.Logger, allowed memlimit.Provider) {
	limit, err := memlimit.Set(memlimit.WithProvider(allowed))
	switch {
	case errors.Is(err, memlimit.ErrCgroupsNotSupported), errors.Is(err, memlimit.ErrNoCgroup):
	case err != nil:
		log.Warn("the memory limit is unknown: set GOMEMLIMIT", "error", visible.Text(err.Error()))
	case limit < math.MaxInt64:
		log.Debug("memory limit", "bytes", limit)
	}
}
