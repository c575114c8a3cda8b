// The TypeScript SDK, first major version. Its argument is the transport: http, sse or stdio.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { announce, drive } from './drive.mjs';
import { authorizer, connect, expire } from './oauth.mjs';

await drive(async (order) => {
  const client = new Client({ name: 'interop-sdk-v1', version: '1.0.0' }, { capabilities: announce(order) });
  if (order.roots) {
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: order.roots.map((uri) => ({ uri })) }));
  }
  const authProvider = authorizer(order, ClientCredentialsProvider);
  const requestInit = order.token && { headers: { Authorization: `Bearer ${order.token}` } };
  const transports = {
    http: () => new StreamableHTTPClientTransport(new URL(order.url), { authProvider, requestInit }),
    sse: () => new SSEClientTransport(new URL(order.url), { authProvider }),
    stdio: () => new StdioClientTransport({ command: order.command[0], args: order.command.slice(1) }),
  };
  let protocol = '';
  await connect(client, authProvider, () => {
    const transport = transports[process.argv[2]]();
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => { protocol = version; set?.(version); };
    return transport;
  }, UnauthorizedError);
  return {
    protocol: () => protocol,
    tools: async () => (await client.listTools()).tools.map((t) => t.name),
    call: (name, args, meta) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }),
    authorizations: () => authProvider?.asked,
    expire: () => expire(authProvider),
    close: () => client.close(),
  };
});
