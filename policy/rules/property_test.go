package rules

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgfsm/policy/condition"
)

// A property is asked about random policies and a random call. It counts in told how often it had something to say.
type property func(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error

// check asks a property about sets of policies, and calls for each.
func check(d decider, p property, sets, calls int) (told int, err error) {
	r := rand.New(rand.NewPCG(4, 2026))
	for range sets {
		policies := randomPolicies(r, 8)
		for range calls {
			if err := p(d, r, policies, randomCall(r), &told); err != nil {
				return told, err
			}
		}
	}
	return told, nil
}

// Replacing a condition by one that fails never turns a denial or a hold into an allow.
func failureNeverAllows(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	before := d(policies, in)
	i := r.IntN(len(policies))
	for _, spoil := range []func(*Policy) *string{
		func(p *Policy) *string { return &p.When },
		func(p *Policy) *string { return &p.Deny },
		func(p *Policy) *string { return &p.RequireApprovalIf },
	} {
		spoilt := slices.Clone(policies)
		condition := spoil(&spoilt[i])
		if *condition == "" {
			continue
		}
		*condition = failing
		if before.Effect == Allow {
			continue
		}
		*told++
		if after := d(spoilt, in); after.Effect == Allow {
			return counterexample(policies, in, "%s became %s after a condition of %s failed", before.Effect, after.Effect,
				policies[i].ID)
		}
	}
	return nil
}

// A shadow policy changes nothing but the record, and the record says what it would do if it alone were enforced.
func shadowsOnlyWatch(d decider, _ *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	got := d(policies, in)
	without := slices.DeleteFunc(slices.Clone(policies), func(p Policy) bool { return p.Mode == Shadow })
	want := d(without, in)
	recorded := got.Shadow
	got.Shadow = nil
	if !equal(got, want) {
		return counterexample(policies, in, "with shadows %+v, without %+v", got, want)
	}
	for i, p := range policies {
		if p.Mode != Shadow {
			continue
		}
		*told++
		enforced := slices.Clone(policies)
		enforced[i].Mode = Enforce
		then := d(enforced, in)
		at := slices.IndexFunc(recorded, func(s ShadowDecision) bool { return s.Policy == p.ID })
		switch {
		case at < 0 && then.Policy == p.ID:
			return counterexample(policies, in, "%s would have decided and is not recorded", p.ID)
		case at >= 0 && recorded[at] != ShadowDecision{then.Condition, then.Effect, then.Failed, then.Policy}:
			return counterexample(policies, in, "%s is recorded as %+v and decides %+v", p.ID, recorded[at], then)
		}
	}
	return nil
}

var properties = []struct {
	name  string
	holds property
	// breaks returns a decider that the property must notice.
	breaks func(right decider) decider
}{
	{"a-failing-condition-never-turns-no-into-yes", failureNeverAllows, takingFailuresForFalse},
	{"shadows-only-watch", shadowsOnlyWatch, enforcingShadows},
}

func takingFailuresForFalse(right decider) decider {
	return func(policies []Policy, in condition.Input) Decision {
		wrong := slices.Clone(policies)
		for i := range wrong {
			for _, source := range []*string{&wrong[i].When, &wrong[i].Deny, &wrong[i].RequireApprovalIf} {
				if *source == failing {
					*source = "false"
				}
			}
		}
		return right(wrong, in)
	}
}

func enforcingShadows(right decider) decider {
	return func(policies []Policy, in condition.Input) Decision {
		wrong := slices.Clone(policies)
		for i := range wrong {
			wrong[i].Mode = Enforce
		}
		return right(wrong, in)
	}
}

func TestProperties(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			sets := 60
			if os.Getenv("PGFSM_SOAK") != "" {
				sets = 3000
			}
			told, err := check(compiled(t), p.holds, sets, 6)
			if err != nil {
				t.Fatal(err)
			}
			if told < sets/4 {
				t.Errorf("the property had something to say %d times in %d sets: it is hardly tested", told, sets)
			}
			t.Logf("asked %d times", told)
		})
	}
}

func TestProperties_CanFail(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			if told, err := check(p.breaks(compiled(t)), p.holds, 1000, 6); !errors.Is(err, errCounterexample) {
				t.Errorf("a decider that is wrong passed %d questions, %v; want a counterexample", told, err)
			}
		})
	}
}
