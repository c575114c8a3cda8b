package traces

import (
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// Memory keeps a run's chain in memory and nowhere else. It implements [states.Recorder], without being durable: for
// measurements and for evaluations, never for runs that call anything real.
type Memory struct {
	now    func() string
	header []byte
	chain  chain
	steps  [][]byte
}

// InMemory starts a record in memory.
func InMemory(h Header, now func() string) (*Memory, error) {
	header, err := h.canonical()
	if err != nil {
		return nil, err
	}
	return &Memory{now: now, header: header, chain: chain{prev: canonical.Sum(kindHeader, header)}}, nil
}

// Append keeps the step.
func (m *Memory) Append(s states.Step) error {
	m.steps = append(m.steps, m.chain.link(s, m.now()))
	return nil
}
