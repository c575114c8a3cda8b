// The TypeScript SDK, second major version. Its argument is how it finds the revision: legacy or auto.
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { announce, drive } from './drive.mjs';
import { authorizer, connect, expire } from './oauth.mjs';

await drive(async (order) => {
  const client = new Client({ name: 'interop-sdk-v2', version: '1.0.0' },
    { capabilities: announce(order), versionNegotiation: { mode: process.argv[2] } });
  const replies = { ...order.replies };
  const asked = [];
  if (order.roots) replies['roots/list'] = { roots: order.roots.map((uri) => ({ uri })) };
  for (const [method, result] of Object.entries(replies)) {
    client.setRequestHandler(method, () => { asked.push(method); return result; });
  }
  const authProvider = authorizer(order, ClientCredentialsProvider);
  const requestInit = order.token && { headers: { Authorization: `Bearer ${order.token}` } };
  await connect(client, authProvider, () => new StreamableHTTPClientTransport(new URL(order.url), { authProvider, requestInit }), UnauthorizedError);
  return {
    protocol: () => client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools.map((t) => t.name),
    call: (name, args, meta) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }),
    asked: () => asked,
    authorizations: () => authProvider?.asked,
    expire: () => expire(authProvider),
    close: () => client.close(),
  };
});
