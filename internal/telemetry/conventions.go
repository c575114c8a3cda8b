package telemetry

import "go.opentelemetry.io/otel/attribute"

// Attributes of OpenTelemetry's conventions for MCP and GenAI, which are in development and not in
// package semconv any more. mcp.session.id is missing on purpose: a client that knows a session's
// id can use the session.
const (
	attrMethod    = attribute.Key("mcp.method.name")
	attrProtocol  = attribute.Key("mcp.protocol.version")
	attrTool      = attribute.Key("gen_ai.tool.name")
	attrOperation = attribute.Key("gen_ai.operation.name")
	attrRequestID = attribute.Key("jsonrpc.request.id")
	attrStatus    = attribute.Key("rpc.response.status_code")
	attrErrorType = attribute.Key("error.type")
	attrTransport = attribute.Key("network.transport")
	attrAddress   = attribute.Key("server.address")
	attrPort      = attribute.Key("server.port")
)

// Attributes of our own.
const (
	attrServer      = attribute.Key("pgfsm.server")
	attrRun         = attribute.Key("pgfsm.run")
	attrRunDecision = attribute.Key("pgfsm.decision")
	attrRunGate     = attribute.Key("pgfsm.gate")
)

// Values of the conventions.
const (
	operationTool = "execute_tool"
	transportTCP  = "tcp"
	transportPipe = "pipe"
)

const instrumentation = "pgfsm"
