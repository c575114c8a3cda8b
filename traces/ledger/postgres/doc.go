// Package postgres stores a ledger in PostgreSQL, for any number of processes at the same time.
//
// Every Update locks the one row of table log first, so that all writers are in one order and each
// sees all earlier commits. A process owns runs by a lease, a row of replicas, which it renews by
// the database's clock. No statement needs a session: a pooler may give each transaction another
// connection. The tests run with PostgreSQL 15.
package postgres
