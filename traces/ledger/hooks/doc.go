// Package hooks sends messages to web hooks, for example of chat tools: a call is held, or a held
// call is decided. Approvers decide over the API.
//
// Messages follow Standard Webhooks: webhook-id, webhook-timestamp, and webhook-signature over both
// and the body, so that a receiver can check the sender and the time of a message, and detect
// repeated messages. A message has the binding and its digests, but no arguments: these need a
// token and the API.
//
// The ledger's events are the queue. For each hook the ledger stores the last sent event, and at
// most one message that is being sent. So messages arrive in the order of the events, at least
// once, and survive a crash: if a process ends after it sent a message and before it recorded that,
// the message is sent again with the same id. A lease ensures that only one of several processes
// sends a message. If a receiver fails, the sender tries again with growing pauses, then drops the
// message and continues with the next one. Decisions never wait for messages.
package hooks
