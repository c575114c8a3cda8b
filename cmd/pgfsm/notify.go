package main

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

	"pgfsm/internal/visible"
)

// notify tells systemd that this service is ready. When ctx ends, it tells systemd that the service stops, unless cancel was called before.
// Without the variable NOTIFY_SOCKET, which systemd sets for units of Type=notify, it does nothing. Servers that pgfsm starts do not inherit
// the variable.
func notify(ctx context.Context, log *slog.Logger) (cancel func() bool) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			log.Warn("systemd cannot be notified", "state", state, "error", visible.Error(err))
		}
	}
	tell(daemon.SdNotifyReady)
	return context.AfterFunc(ctx, func() { tell(daemon.SdNotifyStopping) })
}
