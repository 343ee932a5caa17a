import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type JWK, Provider } from "oidc-provider";
import type { TestBrowser } from "../clients/test-browser.ts";
import { closeAfterTests } from "../closing.ts";
import { providerSettings } from "./identity-provider.ts";

const KEEP_ALIVE_MS = 75_000;

const FORM = `<!doctype html><title>Example ID</title><h1>Example ID</h1>
<form method="post"><label>Name <input name="username" autofocus></label><button>Sign in</button></form>`;

/**
 * Starts a real identity provider, on oidc-provider, whose only client is a service. Any username can sign in without a
 * password.
 */
export async function startOidcProvider(service: { url: string }, port: number) {
  const issuer = `http://localhost:${port}`;
  const { IDP_CLIENT_ID = "", IDP_CLIENT_SECRET = "" } = providerSettings(issuer);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { kid: "the-key", alg: "RS256", use: "sig" };
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
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id }) }),
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
    if (!ctx.path.startsWith("/sign-in/")) return next();
    if (ctx.method === "GET") {
      ctx.body = FORM;
      return;
    }
    const accountId = new URLSearchParams(await text(ctx.req)).get("username") ?? "";
    ctx.status = 303;
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, { login: { accountId } }));
  });

  const server = provider.listen(port, "localhost");
  // On a busy machine, the server would otherwise close a connection just as the client sends its next request.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await once(server, "listening");

  /**
   * Follows an authorization request, and resolves to the callback URL, for a browser that may have a session at the
   * provider. `username` signs in if there is a prompt.
   */
  async function answerAs(username: string, url: string, browser: TestBrowser) {
    const page = await browser.open(url);
    return page.html.querySelector("form") ? (await browser.submit(page, { username })).url : page.url;
  }

  return {
    issuer,
    answerAs,
    stop: closeAfterTests(async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    }),
  };
}
