// Package api lets people and programs look at held calls and decide about them over HTTP. It is a handler over a
// ledger: what may be decided, and by whom, [ledger.Ledger.Vote] says; here is only the way to it.
//
// The way is narrow on purpose. A browser on the same machine can reach every port of it, so the Host header must be one of
// the names that are served (a name that was rebound to this machine is none of them), an Origin must be the same, no
// cookie is ever looked at, and every caller presents a token, also on loopback. A header that would decide something and
// comes twice, a path in another spelling, a parameter that is not known, a body where none belongs: refused, not guessed.
//
// Every answer is JSON, errors are problems (RFC 9457) with a stable code. The document openapi.yaml describes all of it,
// is served, and is held to the handler by tests.
package api
