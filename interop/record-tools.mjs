// Records the tools/list results of an MCP server from npm, for TestFalseRefusals:
//
//   npm install --ignore-scripts @scope/server   (in a folder of its own)
//   node record-tools.mjs FOLDER @scope/server OUT.json COMMAND [ARGUMENT ...]
//
// The server gets PATH, HOME and what the variable SERVER_ENV (NAME=VALUE, one a line) says.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [folder, name, out, command, ...args] = process.argv.slice(2);
const { version, license } = JSON.parse(readFileSync(`${folder}/node_modules/${name}/package.json`, 'utf8'));
const env = { PATH: process.env.PATH, HOME: process.env.HOME };
for (const line of (process.env.SERVER_ENV ?? '').split('\n').filter(Boolean)) {
  env[line.slice(0, line.indexOf('='))] = line.slice(line.indexOf('=') + 1);
}
const server = spawn(command, args, { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] });
const give = setTimeout(() => { console.error('no answer within 40 seconds'); server.kill(); process.exit(1); }, 40_000);
const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const tools = [];

createInterface({ input: server.stdout }).on('line', (line) => {
  let message;
  try { message = JSON.parse(line); } catch { return; }
  if (message.method && message.id !== undefined) {
    send({ id: message.id, error: { code: -32601, message: 'not supported' } });
  } else if (message.error && message.id !== undefined) {
    console.error(message.error);
    process.exit(1);
  } else if (message.id === 0) {
    send({ method: 'notifications/initialized' });
    send({ id: 1, method: 'tools/list', params: {} });
  } else if (message.id > 0) {
    tools.push(...message.result.tools);
    if (message.result.nextCursor !== undefined) {
      send({ id: message.id + 1, method: 'tools/list', params: { cursor: message.result.nextCursor } });
      return;
    }
    clearTimeout(give);
    const lines = tools.map((tool) => JSON.stringify(tool)).join(',\n');
    const head = JSON.stringify({ package: name, version, license }).slice(0, -1);
    writeFileSync(out, `${head},"tools":[\n${lines}\n]}\n`);
    console.log(`${name} ${version}: ${tools.length} tools`);
    server.kill();
    process.exit(0);
  }
});
send({ id: 0, method: 'initialize', params: {
  protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'recorder', version: '1' } } });
