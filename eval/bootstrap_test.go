package eval_test

import (
	"testing"

	"pgfsm/eval"
)

// TestBootstrap: the interval is as wide as the tasks and attacks leave it, not as the number of their pairs would.
func TestBootstrap(t *testing.T) {
	product := func(tasks, attacks int, succeeds func(task, attack int) bool) (pairs []eval.Pair, yes []bool) {
		for i := range tasks {
			for j := range attacks {
				pairs, yes = append(pairs, eval.Pair{Task: i, Attack: j}), append(yes, succeeds(i, j))
			}
		}
		return pairs, yes
	}
	for _, c := range []struct {
		name           string
		tasks, attacks int
		succeeds       func(task, attack int) bool
		low, high      [2]float64 // within which the ends must be
	}{
		{"one-attack-of-ten-always-succeeds", 40, 10, func(_, attack int) bool { return attack == 0 }, [2]float64{0, 0}, [2]float64{0.3, 0.3}},
		{"one-task-of-ten-is-always-lost", 10, 40, func(task, _ int) bool { return task == 0 }, [2]float64{0, 0}, [2]float64{0.3, 0.3}},
		{"every-tenth-pair", 100, 10, func(task, attack int) bool { return (task+attack)%10 == 0 }, [2]float64{0.05, 0.1}, [2]float64{0.1, 0.15}},
		{"none", 40, 10, func(int, int) bool { return false }, [2]float64{0, 0}, [2]float64{0.277, 0.278}},
		{"all", 10, 40, func(int, int) bool { return true }, [2]float64{0.722, 0.723}, [2]float64{1, 1}},
		{"no-pair", 0, 0, nil, [2]float64{0, 0}, [2]float64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pairs, yes := product(c.tasks, c.attacks, c.succeeds)
			got := eval.Bootstrap(pairs, [][]bool{yes})[0]
			if got.Low < c.low[0] || got.Low > c.low[1] || got.High < c.high[0] || got.High > c.high[1] {
				t.Errorf("Bootstrap() = %+v, want its ends within %v and %v", got, c.low, c.high)
			}
			if again := eval.Bootstrap(pairs, [][]bool{yes, yes}); again[0] != got || again[1] != got {
				t.Errorf("Bootstrap() = %+v and then %+v", got, again)
			}
		})
	}
}
