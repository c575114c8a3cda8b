// Package crash has only tests. They check the ledger's guarantees with real processes: the tests kill them, let them race, and make their writes fail.
package crash
