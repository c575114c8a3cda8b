//go:build !unix

package ledgertest

import "testing"

// Main runs a package's tests. It is for TestMain, which passes its result to os.Exit.
func Main(m *testing.M) int { return m.Run() }

func newDatabase(testing.TB) string { return "" }

func endLeases(string, []string) error { return nil }
