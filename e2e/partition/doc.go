// Package partition checks several gateways on one ledger: its test breaks what connects and runs them, records what their clients saw and
// what arrived at the server, and compares this history with the invariants.
package partition
