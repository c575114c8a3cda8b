package main

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

	"pgfsm/policy/visible"
)

// notify tells systemd the state of this service: one of the constants SdNotify… of package daemon. It does nothing if the variable
// NOTIFY_SOCKET is not set, which systemd sets for units of Type=notify. Servers that pgfsm starts do not inherit the variable.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd cannot be notified", "state", state, "error", visible.Text(err.Error()))
	}
}
