//go:build !linux

package ledgertest

import "testing"

func folder(tb testing.TB) string { return tb.TempDir() }
