package main

import (
	"errors"
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"pgfsm/internal/visible"
)

// gcPercent replaces the garbage collector's 100 for the gateway and the evaluation of the gates, unless GOGC is set: calls leave much
// garbage beside a small heap. It costs half as much memory again, and saves a tenth of the time.
const gcPercent = 400

func setGCPercent(w world) {
	if w.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// limitMemory has the garbage collector keep the process within nine tenths of the memory that its container or service may have, unless
// GOMEMLIMIT is set. A machine without such a limit sets none.
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
