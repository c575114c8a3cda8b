//go:build !unix

package clitest

// Private makes the files that this process writes readable by its user alone.
func Private() {}
