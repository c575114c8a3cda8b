// Package cputime says what processor time this process has used: a figure for benchmarks and tests that other work on the machine hardly moves.
// It is for tests.
package cputime

import "testing"

// Measure begins to measure. What it returns is called when the loop is over, and reports cpu-ns/op.
func Measure(b *testing.B) (done func()) {
	before := Used()
	return func() { b.ReportMetric(float64(Used()-before)/float64(b.N), "cpu-ns/op") }
}
