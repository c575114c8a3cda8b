package main

import (
	"errors"
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"pgfsm/internal/visible"
)

// gcPercent replaces the garbage collector's default of 100 for the gateway and the evaluation of the gates, unless GOGC is set. Calls
// leave much garbage beside a small heap. The setting costs half as much memory again, and saves a tenth of the time.
const gcPercent = 400

func setGCPercent(w world) {
	if w.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// limitMemory sets the garbage collector's memory limit to nine tenths of the limit of the container or service, unless GOMEMLIMIT is set.
// Without a limit of the container or service, it sets none.
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
