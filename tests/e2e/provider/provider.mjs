// Runs oidc-provider as it is, with its own log-in pages: node provider.mjs FOLDER PORT PEOPLE. FOLDER has its
// node_modules, PORT 0 is a free one, PEOPLE is JSON: {"ada": {"groups": ["gantry-admins"]}}. Keys are made at each
// start, so another start on the same port is a change of keys.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [folder, port, people] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(createRequire(`${folder}/`).resolve('oidc-provider')));
const known = JSON.parse(people);
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });

const server = createServer();
server.listen(Number(port), '127.0.0.1', () => {
  const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    clients: [{
      client_id: 'gantry', client_secret: 'a-secret-of-the-test', application_type: 'native', // any port of loopback
      redirect_uris: ['http://127.0.0.1/login/provider/back'],
      post_logout_redirect_uris: ['http://127.0.0.1/login'],
      token_endpoint_auth_method: 'client_secret_basic',
    }],
    jwks: { keys: [{ ...key, kid: randomUUID(), use: 'sig', alg: 'RS256' }] },
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    pkce: { required: () => true },
    cookies: { keys: [randomUUID()] },
    findAccount: (_, id) => known[id] && {
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, ...known[id] }),
    },
  });
  server.on('request', provider.callback());
  console.log(`READY ${server.address().port}`);
});
