//go:build !unix

package main

import "testing"

// suite is the package's tests.
type suite struct{ *testing.M }
