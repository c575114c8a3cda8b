package e2e

// honestScript answers as a server with one tool, in a shell.
const honestScript = `while read -r line; do id=${line#*\"id\":}; id=${id%%,*}; case "$line" in ` +
	`*initialize\"*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}";; ` +
	`*tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"}}]}}";; ` +
	`*tools/call*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}";; esac; done`
