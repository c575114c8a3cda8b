// The TypeScript SDK, second major version. Its argument is how it finds the revision: legacy or auto.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { announce, drive } from './drive.mjs';

await drive(async (order) => {
  const client = new Client({ name: 'interop-sdk-v2', version: '1.0.0' },
    { capabilities: announce(order), versionNegotiation: { mode: process.argv[2] } });
  if (order.roots) {
    client.setRequestHandler('roots/list', () => ({ roots: order.roots.map((uri) => ({ uri })) }));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(order.url)));
  return {
    protocol: () => client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools.map((t) => t.name),
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  };
});
