//go:build !unix

package cli

// Private makes the files that this process writes readable by its user alone.
func Private() {}
