// Package crash checks the ledger's guarantees with real processes: its tests kill them, let them race, and make their writes fail.
package crash
