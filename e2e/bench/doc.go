// Package bench measures what a gateway costs: the same calls direct, through a bare proxy and through pgfsm, in turns, in one run.
// It has tests only. `make bench-gateway` builds pgfsm and runs TestLoad; without -load that test skips, and the others check
// the instrument itself.
package bench
