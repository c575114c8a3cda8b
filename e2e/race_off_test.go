//go:build !race

package e2e

func scaled(n int) int { return n }

const raceDetector = false
