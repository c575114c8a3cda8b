package traces

import (
	"pgfsm/states"
)

// Memory keeps a run's chain in memory and nowhere else. It implements [states.Recorder], without being durable: for
// measurements and for evaluations, never for runs that call anything real.
type Memory struct {
	now   func() string
	chain chain
	steps []byte
}

// InMemory starts a record in memory.
func InMemory(h Header, now func() string) *Memory {
	return &Memory{now: now, steps: make([]byte, 0, usualSteps), chain: h.chain()}
}

// Restart forgets the run and starts the record of another in the same memory.
func (m *Memory) Restart(h Header) {
	m.steps, m.chain = m.steps[:0], h.chain()
}

// Append keeps the step.
func (m *Memory) Append(s states.Step) error {
	m.steps = m.chain.link(m.steps, s, m.now())
	return nil
}
