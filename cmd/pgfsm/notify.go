package main

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

	"pgfsm/internal/visible"
)

// notify tells systemd that this service is ready, and that it stops when ctx ends, unless cancel is called before. It does nothing if the
// variable NOTIFY_SOCKET is not set, which systemd sets for units of Type=notify. Servers that pgfsm starts do not inherit the variable.
func notify(ctx context.Context, log *slog.Logger) (cancel func() bool) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("systemd cannot be notified", "state", state, "error", visible.Error(err))
		}
	}
	tell(daemon.SdNotifyReady)
	return context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })
}
