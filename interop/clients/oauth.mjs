// What an OAuth client of the TypeScript SDK leaves to the program that uses it: a store, which is empty at first, and a browser, whose user
// needs no time. An order's member "oauth" is {"client_id": "…"} for a client that is registered; without the id the client registers itself.
// With "client_secret" and "issuer" too, the client has no user, and the SDK's own class does all. The SDK's first major version then ignores the
// scopes that a server names, and asks for "scope".

// authorizer is the provider of an order, as the SDK calls it: what keeps a client's credentials. An order without "oauth" has none.
export function authorizer({ oauth }, ClientCredentialsProvider) {
  if (!oauth?.client_secret) return oauth && new OAuth(oauth);
  const { client_id, client_secret, issuer, scope } = oauth;
  return new ClientCredentialsProvider({ clientId: client_id, clientSecret: client_secret, expectedIssuer: issuer, scope });
}

// expire replaces the access token by one that no server accepts, so the client has to get another one.
export function expire(provider) {
  if (provider) provider.tokens().access_token = 'expired';
}

class OAuth {
  redirectUrl = 'http://127.0.0.1:1/callback';
  clientMetadata = {
    client_name: 'interop', redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  };
  asked = []; // the parameters of each authorization request
  answered; // the parameters of the authorization response

  constructor({ client_id }) {
    this.client = client_id && { client_id };
  }

  state() { return 'state-1'; }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.issued; }
  saveTokens(tokens) { this.issued = tokens; }
  codeVerifier() { return this.verifier; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  discoveryState() { return this.discovered; }
  saveDiscoveryState(state) { this.discovered = state; }

  async redirectToAuthorization(url) {
    this.asked.push(Object.fromEntries(url.searchParams));
    this.answered = (await browse(url, (at) => at.href.startsWith(this.redirectUrl))).searchParams;
  }
}

// browse plays the browser: it follows redirects, with cookies, to the last URL or the first one at which it has to stop.
export async function browse(url, stop = () => false) {
  const cookies = new Map();
  for (let at = url; ;) {
    if (stop(at)) return at;
    const response = await fetch(at, { redirect: 'manual', headers: { cookie: [...cookies].map((c) => c.join('=')).join('; ') } });
    if (response.status >= 400) throw new Error(`${at}: ${response.status} ${await response.text()}`);
    const location = response.headers.get('location');
    if (!location) return at;
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
      cookies.set(name, value);
    }
    at = new URL(location, at);
  }
}

// connect connects a client. Each time the client has sent the user to the authorization server, it goes on with a new transport.
export async function connect(client, oauth, open, unauthorized) {
  for (let left = 2; ; left--) {
    const transport = open();
    try {
      return await client.connect(transport);
    } catch (e) {
      if (!oauth || left === 0 || !(e instanceof unauthorized)) throw e;
    }
    if (oauth.answered.get('state') !== oauth.state()) throw new Error('the authorization response has another state');
    await transport.finishAuth(oauth.answered.get('code'), oauth.answered.get('iss'));
    await client.close();
  }
}
