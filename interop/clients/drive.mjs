// What every client here has in common: it reads an order from standard input, connects as its SDK does by default, lists
// the tools, makes the calls one after the other (or all at once: "together") and writes what came of them to standard output, as one JSON object.
//
// Order:  {"url": "http://…", "command": ["…"], "calls": [{"name": "…", "arguments": {…}, "_meta": {…}, "until": "…"}], "roots": ["file:///…"], "replies": {"method": {…}}, "oauth": {…}, "token": "…"}
// "command" starts what speaks over stdio, in place of "url".
// Report: {"protocol": "…", "tools": ["…"], "answers": [{"isError": false, "text": "…", "code": "…"} or {"fault": "…"}], "asked": ["method"],
//          "authorizations": [{"parameter": "…"}]}
//
// "fault" is what the client threw; "code" is the code of the gateway's decision, which a refusal has. A call with "until" is made again
// until its text holds that, at most 100 times: the answer is the last one. "replies" are results for what servers ask, of which
// only sdk-v2.mjs knows; "asked" is what they asked. With "oauth" the client of an SDK signs in (see oauth.mjs), and "authorizations" are the
// parameters of its authorization requests; the access token is good for all requests before the calls. With "token" every request has that token.

export async function drive(connect) {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  const order = JSON.parse(text);
  const client = await connect(order);
  const report = { protocol: client.protocol(), tools: await client.tools(), answers: [], asked: client.asked?.(), authorizations: client.authorizations?.() };
  client.expire?.();
  if (order.together) report.answers = await Promise.all(order.calls.map((call) => answer(client, call)));
  else for (const call of order.calls ?? []) report.answers.push(await answer(client, call));
  await client.close();
  process.stdout.write(JSON.stringify(report));
}

async function answer(client, call) {
  let last;
  for (let i = 0; i < 100; i++) {
    last = await make(client, call);
    if (!call.until || last.text?.includes(call.until)) break;
    await new Promise((done) => setTimeout(done, 50));
  }
  return last;
}

async function make(client, call) {
  try {
    return read(await client.call(call.name, call.arguments ?? {}, call._meta));
  } catch (e) {
    return { fault: String(e?.message ?? e) };
  }
}

function read(result) {
  return {
    isError: result.isError === true,
    text: (result.content ?? []).map((c) => (c.type === 'text' ? c.text : c.type)).join('\n'),
    code: result._meta?.['io.pgfsm/decision']?.code ?? '',
  };
}

// announce is what the client of an order can be asked.
export function announce(order) {
  const can = order.roots ? { roots: {} } : {};
  if (order.replies?.['sampling/createMessage']) can.sampling = {};
  if (order.replies?.['elicitation/create']) can.elicitation = { form: {} };
  return can;
}
