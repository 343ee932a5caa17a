import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Context } from "koa";
import bodyParser from "koa-bodyparser";
import { type JWK, Provider } from "oidc-provider";
import { TestBrowser } from "../clients/test-browser.ts";
import { providerSettings, type TestProvider } from "./identity-provider.ts";

const KEEP_ALIVE_MS = 75_000;

const FORM = `<!doctype html><title>Example ID</title><h1>Example ID</h1>
<form method="post"><label>Name <input name="username" autofocus></label><button>Sign in</button></form>`;
const parse = bodyParser();

/** A real identity provider, on oidc-provider. Any username can sign in without a password. */
export type OidcProvider = TestProvider & {
  /** Like `answer`, for a browser that may have a session at the provider. `username` signs in if there is a prompt. */
  answerAs(username: string, url: string, browser: TestBrowser): Promise<string>;
};

/** Starts an identity provider whose only client is a service. The caller stops it. */
export async function startOidcProvider(service: { url: string }, port: number): Promise<OidcProvider> {
  const issuer = `http://localhost:${port}`;
  const { IDP_CLIENT_ID = "", IDP_CLIENT_SECRET = "" } = providerSettings(issuer);
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { kid: "the-key", alg: "RS256", use: "sig" };
  const tampering: ((body: Record<string, unknown>) => unknown)[] = [];
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: IDP_CLIENT_ID,
        client_secret: IDP_CLIENT_SECRET,
        redirect_uris: [`${service.url}/auth/sso/callback`],
        require_auth_time: true,
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), ...key } as JWK] },
    cookies: { keys: ["a key of the identity provider"] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    claims: { openid: ["sub"], profile: ["preferred_username"] },
    conformIdTokenClaims: false,
    interactions: { url: (_ctx, { uid }) => `/sign-in/${uid}` },
    findAccount: (_ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id }),
    }),
    // No consent page: the provider and the service belong to the same organization.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        accountId: oidc.session?.accountId as string,
        clientId: IDP_CLIENT_ID,
      });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });

  provider.use(async (ctx, next) => {
    if (ctx.path.startsWith("/sign-in/")) return signIn(ctx);
    await next();
    if (ctx.path === "/token") tampering.shift()?.(ctx.body as Record<string, unknown>);
  });
  async function signIn(ctx: Context) {
    if (ctx.method === "GET") {
      ctx.type = "html";
      ctx.body = FORM;
      return;
    }
    await parse(ctx, async () => {});
    const { username } = ctx.request.body as { username: string };
    ctx.status = 303;
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, { login: { accountId: username } }));
  }

  const server = provider.listen(port, "localhost");
  // On a busy machine, the server would otherwise close a connection just as the client sends its next request.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await once(server, "listening");
  if ((server.address() as AddressInfo).port !== port) throw new Error("the server listens on another port");

  async function answerAs(username: string, url: string, browser: TestBrowser) {
    const page = await browser.open(url);
    return page.html.querySelector("form") ? (await browser.submit(page, { username })).url : page.url;
  }

  let count = 0;
  return {
    issuer,
    answerAs,
    answer: ({ url }) => answerAs(`person${++count}`, url, new TestBrowser(issuer)),
    tamper: (change) => void tampering.push(change),
    privateKey,
    publicKey: { ...publicKey.export({ format: "jwk" }), ...key },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
