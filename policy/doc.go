// Package policy has the gates: pure functions that judge a request, a plan, a tool, its arguments,
// a call, a result and a summary, and return verdicts. A [Bundle] is everything of the operator's
// configuration that they read, compiled and named by one digest; a [Catalog] is what servers
// offer. The zero value of each verdict and each bundle denies.
package policy
