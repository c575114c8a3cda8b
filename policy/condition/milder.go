package condition

// maxAnswers is how many ways to answer the tests of an expression [Reading.Milder] goes through.
const maxAnswers = 1 << 12

// Milder looks for two of the risks, which stand from the least to the highest, such that the expression is true at the
// first and false at the higher one while everything else is the same. It answers what it finds; tests of anything but
// mode and score count as independent of each other. An expression with very many tests is not gone through.
func (r *Reading) Milder(risks []Risk) (low, high Risk, found bool) {
	f := r.Formula()
	var open []*Atom
	index := map[string]int{}
	f.Atoms(func(a *Atom) {
		if _, had := index[a.Key]; !had && a.Fixed == 0 && a.Name != "risk.mode" && a.Name != "risk.score" {
			index[a.Key] = len(open)
			open = append(open, a)
		}
	})
	answers := []Outcomes{CanTrue, CanFalse, CanFail}
	ways := 1
	for range open {
		if ways *= len(answers); ways > maxAnswers {
			return Risk{}, Risk{}, false
		}
	}
	for way := range ways {
		given := make([]Outcomes, len(open))
		for i, rest := 0, way; i < len(open); i, rest = i+1, rest/len(answers) {
			given[i] = answers[rest%len(answers)]
		}
		first := -1
		for k, at := range risks {
			switch f.Outcomes(func(a *Atom) Outcomes { return a.atRisk(at, given, index) }) {
			case CanTrue:
				if first < 0 {
					first = k
				}
			case CanFalse:
				if first >= 0 {
					return risks[first], at, true
				}
			}
		}
	}
	return Risk{}, Risk{}, false
}

// atRisk returns what a test comes to at a risk; given are the answers of those that do not ask for it.
func (a *Atom) atRisk(at Risk, given []Outcomes, index map[string]int) Outcomes {
	yes := false
	switch a.Name {
	case "risk.score":
		yes = a.Holds(at.Score)
	case "risk.mode":
		for _, t := range a.Texts {
			yes = yes || t.Has(at.Mode)
		}
	default:
		return given[index[a.Key]]
	}
	if yes {
		return CanTrue
	}
	return CanFalse
}
