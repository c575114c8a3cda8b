package condition

// Cost gives tests what was spent of both budgets.
func (s *Subject) Cost() (deciding, trial uint64) { return s.deciding.usedUnits(), s.trial.usedUnits() }
