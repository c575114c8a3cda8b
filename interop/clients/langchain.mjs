// LangChain's adapter. What it lists it calls as an agent would, through the tool's invoke; what is not listed it has no
// tool for, so that goes through the MCP client below. Its argument is the transport: http or sse.
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { drive } from './drive.mjs';

await drive(async (order) => {
  const client = new MultiServerMCPClient({
    useStandardContentBlocks: true,
    mcpServers: { gateway: { transport: process.argv[2], url: order.url, automaticSSEFallback: false } },
  });
  const tools = await client.getTools();
  const below = await client.getClient('gateway');
  return {
    protocol: () => '',
    tools: async () => tools.map((t) => t.name),
    call: async (name, args) => {
      const tool = tools.find((t) => t.name === name);
      if (!tool) return below.callTool({ name, arguments: args });
      const said = await tool.invoke({ type: 'tool_call', id: 'call-1', name, args });
      const content = typeof said.content === 'string' ? [{ type: 'text', text: said.content }] : said.content;
      return { content, isError: said.status === 'error' };
    },
    close: () => client.close(),
  };
});
