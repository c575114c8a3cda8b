package main

import "pgfsm/policy/canonical"

// mask takes our own secrets out of what a server or a model sent, before it is recorded. What holds none stays as it
// came, byte for byte.
func (a *app) mask(b []byte) canonical.Text { return a.secrets.Bytes(b) }
