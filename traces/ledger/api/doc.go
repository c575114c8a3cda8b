// Package api serves held calls over HTTP, and takes votes about them. [ledger.Ledger.Vote] decides
// which votes count.
//
// The API is strict on purpose. A browser on the same machine can reach every port, so the Host
// header must be one of the configured names (which protects against DNS rebinding), an Origin must
// be the same, cookies are never read, and every caller presents a token, also on loopback. A
// repeated header that decides something, an escaped path, an unknown parameter, and an unexpected
// body are rejected.
//
// Every answer is JSON; errors are problems (RFC 9457) with a stable code. The document
// openapi.yaml describes the whole API. The handler serves it, and tests compare it with the
// handler.
package api
