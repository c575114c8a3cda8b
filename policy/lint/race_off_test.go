//go:build !race

package lint_test

func scaled(n int) int { return n }
