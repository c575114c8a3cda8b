// Package check ends a test whose preparation failed.
package check

import "testing"

// NoError ends the test if there is an error.
func NoError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
