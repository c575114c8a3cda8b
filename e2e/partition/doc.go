// Package partition has only a test. It runs several gateways on one ledger, breaks what connects and runs them, records what their clients
// saw and what arrived at the server, and checks this history.
package partition
