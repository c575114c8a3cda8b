// Package crashtest holds the tests that take the ledger's promises at their word, with processes of the operating system:
// they are killed, they race, and what they write to breaks. It has tests only.
package crashtest
