// Which tools of a corpus the clients of the TypeScript SDK list: one list for each tool. It reads the tools from standard input, as a list,
// and writes for each major version of the SDK the names of the tools that make its client reject the list.
import { Client as V1 } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport as V1Transport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Client as V2, InMemoryTransport as V2Transport } from '@modelcontextprotocol/client';

let text = '';
for await (const chunk of process.stdin) text += chunk;
const tools = JSON.parse(text);

async function accepts(Client, Transport, options, tool) {
  const [ours, theirs] = Transport.createLinkedPair();
  theirs.onmessage = ({ id, method, params }) => {
    const result = {
      initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } },
      'tools/list': { tools: [tool] },
    }[method];
    if (id !== undefined) void theirs.send({ jsonrpc: '2.0', id, result });
  };
  await theirs.start();
  const client = new Client({ name: 'odd', version: '1' }, options);
  await client.connect(ours);
  try {
    return (await client.listTools()).tools.length === 1;
  } catch {
    return false;
  } finally {
    await client.close();
  }
}

const report = { v1: [], v2: [] };
for (const tool of tools) {
  if (!await accepts(V1, V1Transport, {}, tool)) report.v1.push(tool.name);
  if (!await accepts(V2, V2Transport, { versionNegotiation: { mode: 'legacy' } }, tool)) report.v2.push(tool.name);
}
process.stdout.write(JSON.stringify(report));
