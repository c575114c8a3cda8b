// Package api serves the admin address: an API for programs, and a console whose pages let people
// decide about held calls and look at runs. [ledger.Ledger.Vote] decides which votes count.
//
// A request passes one guard, which decides by the route of its path: it checks the headers, the
// host, the origin, the path, the method, the token or the session, the role, the query and the
// body. Then one function of the route reads or changes the ledger, and returns an answer. The API's
// documents and the console's pages show the same values. Every error is a [Code] of one table.
//
// The API is strict on purpose. A browser on the same machine can reach every port, so the Host
// header must be one of the configured names (which protects against DNS rebinding), an Origin must
// be the same, cookies are never read, and every caller presents a token, also on loopback. A
// repeated header that decides something, an escaped path, an unknown parameter, and an unexpected
// body are rejected. Its answers are JSON; its errors are problems (RFC 9457). The document
// openapi.yaml describes the API. The handler serves it, and tests compare it with the handler.
//
// In the console, a person signs in with a token, with a link that pgfsm console prints, or at an
// identity provider, and gets a session, which a cookie carries. The console never reads bearer
// tokens. Every page works without JavaScript: a vote is a form. The script only refreshes pages
// whose content has changed. Text from agents and servers is escaped. Characters that are not
// visible as themselves are written as marked escapes.
package api
