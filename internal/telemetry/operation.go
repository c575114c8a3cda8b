package telemetry

import (
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// An Operation is a request and its answer. Server and Tool are only of tools/call; names that the
// allowlist does not have must be [Other].
type Operation struct {
	Method, Server, Tool string
	ErrorType            string // empty: the request succeeded
	Begun                time.Time
	Took                 time.Duration

	// Only spans have these. What is empty is not known.
	RequestID string // the JSON-RPC id
	Protocol  string // the revision of MCP
	URL       string // the URL of a call's server; empty: its transport is standard input
	Stdio     bool   // the transport of an agent's request is standard input
	Run       string // id of the run
	Decision  string // the decision about the call
	Gate      string // the gate that decided
}

// Other stands for names that are not bounded by the configuration.
const Other = "_other"

// labelValues returns the values of [operationLabels] for metrics.
func (o *Operation) labelValues() []string {
	operation, server := "", ""
	if o.Tool != "" {
		operation, server = operationTool, o.Server
	}
	return []string{o.Method, operation, server, o.Tool, o.ErrorType}
}

// maxRequestID bounds the length of a request's id, which the agent chooses, in bytes.
const maxRequestID = 64

// spanAttributes returns the attributes of spans.
func (o *Operation) spanAttributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{attrMethod.String(o.Method)}
	if o.Tool != "" {
		attributes = append(attributes, attrOperation.String(operationTool), attrServer.String(o.Server),
			attrTool.String(o.Tool))
	}

	add := func(key attribute.Key, value string) {
		if value != "" {
			attributes = append(attributes, key.String(value))
		}
	}

	add(attrErrorType, o.ErrorType)
	if len(o.RequestID) <= maxRequestID {
		add(attrRequestID, o.RequestID)
	}

	if _, err := strconv.Atoi(o.ErrorType); err == nil { // a code of JSON-RPC
		add(attrStatus, o.ErrorType)
	}

	add(attrProtocol, o.Protocol)
	add(attrRun, o.Run)
	add(attrRunDecision, o.Decision)
	add(attrRunGate, o.Gate)

	return attributes
}

// peerAttributes are the attributes of a server that is called.
func (o *Operation) peerAttributes() []attribute.KeyValue {
	u, err := url.Parse(o.URL)
	if o.URL == "" || err != nil {
		return []attribute.KeyValue{attrTransport.String(transportPipe)}
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{attrTransport.String(transportTCP), attrAddress.String(u.Hostname()),
		attrPort.Int(port)}
}

// spanName is the name of the operation's span.
func (o *Operation) spanName() string {
	if o.Tool == "" {
		return o.Method
	}
	return o.Method + " " + o.Tool
}
