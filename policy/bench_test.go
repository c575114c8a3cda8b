package policy_test

import (
	"testing"

	"pgfsm/states/statestest"
)

// BenchmarkGates is every gate, for a question of ordinary length, the default input rules, a plan with eight arguments and
// a typed result: up to the permit, and all of them. BenchmarkRatios of package traces sets them beside their floor.
func BenchmarkGates(b *testing.B) {
	gates := statestest.NewGates()
	b.Run("up-to-permit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, v := gates.UpToPermit(); !v.Allows() {
				b.Fatal(v)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v := gates.All(); !v.Allows() {
				b.Fatal(v)
			}
		}
	})
}

// BenchmarkBareValidator is the floor of the gates.
func BenchmarkBareValidator(b *testing.B) {
	validate := statestest.BareValidator()
	b.ReportAllocs()
	for b.Loop() {
		if err := validate(); err != nil {
			b.Fatal(err)
		}
	}
}
