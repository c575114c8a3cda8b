// Package hooks tells web hooks what happens to held calls: that people are asked, and what was decided. Chat tools can be
// hung on it; whoever is told decides over the API, like everybody else.
//
// Messages follow Standard Webhooks: webhook-id, webhook-timestamp, and webhook-signature over both and the body, so that
// a receiver knows that a message is ours, when it was sent, and whether it had it before. A message says what is bound and
// by which digests, but not the arguments: who has a token reads them over the API.
//
// The ledger's events are the queue. For each hook the ledger keeps how far it was told, and at most the one message that
// is on its way. So messages come in the order of the events, survive a crash, and come at least once: a process that ends
// between sending and writing that down leaves a message that is sent again, under the same id. A message on its way is
// leased, so that of several processes one sends it. A receiver that fails is tried again with growing pauses; then the
// message is given up, and the next ones have their turn. Nothing here ever holds up a decision.
package hooks
