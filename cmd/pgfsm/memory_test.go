package main

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestMemoryLimitOfTheContainer(t *testing.T) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		t.Skip("GOMEMLIMIT is set")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, tt := range []struct {
		name  string
		gives memlimit.Provider
		want  int64
		says  string
	}{
		{"limit", memlimit.Limit(1 << 40), 1 << 40 / 10 * 9, "memory limit"},
		{"none", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, math.MaxInt64, ""},
		{"another-system", func() (uint64, error) { return 0, memlimit.ErrCgroupsNotSupported }, math.MaxInt64, ""},
		{"unreadable", func() (uint64, error) { return 0, errors.New("denied") }, math.MaxInt64, "set GOMEMLIMIT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			debug.SetMemoryLimit(math.MaxInt64)
			var log bytes.Buffer
			limitMemory(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), tt.gives)
			if got := debug.SetMemoryLimit(-1); got/10 != tt.want/10 || !strings.Contains(log.String(), tt.says) || tt.says == "" && log.Len() > 0 {
				t.Errorf("the limit is %d, want %d; %s", got, tt.want, &log)
			}
		})
	}
}
