import type { Check } from "../check.ts";
import { basic, type Conversation, encode, type Reply } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

const ORIGIN = "https://app.example";

function challengeOf({ headers }: Reply): string {
  return headers.get("www-authenticate") ?? "";
}

function isRejected(reply: Reply): void {
  expect(reply.status === 401, `the response is ${reply.status}`);
  expect(
    /\b(bearer|dpop)\b/i.test(challengeOf(reply)),
    "WWW-Authenticate has no challenge for Bearer or DPoP",
  );
}

/** RFC 9728 §3.1 */
function metadataUrlOf(resource: string): string {
  const { origin, pathname } = new URL(resource);
  return `${origin}/.well-known/oauth-protected-resource${pathname === "/" ? "" : pathname}`;
}

async function metadataOf(conversation: Conversation): Promise<Reply> {
  const reply = await conversation.send(conversation.resource);
  const [, named] = /resource_metadata="([^"]+)"/.exec(challengeOf(reply)) ?? [];
  const { audience } = conversation.target;
  return conversation.send(named ?? metadataUrlOf(audience ?? conversation.resource));
}

type Altered = [id: string, title: string, change: (token: string) => string];

const ALTERED: Altered[] = [
  ["resource-longer", "A token with another character at its end is rejected", (token) => `${token}x`],
  ["resource-shorter", "A token without its last character is rejected", (token) => token.slice(0, -1)],
  [
    "resource-case",
    "A token in another case is rejected",
    (token) => (token === token.toLowerCase() ? token.toUpperCase() : token.toLowerCase()),
  ],
  ["resource-unknown", "An unknown token is rejected with invalid_token", () => "unknown-token"],
];

export const resourceChecks: Check[] = [
  {
    id: "resource-token",
    title: "A token is accepted in the Authorization header",
    clause: "RFC 6750 §2.1",
    async run(conversation) {
      const { status } = await conversation.call(await conversation.accessToken());
      expect(status < 400, `the response is ${status}`);
    },
  },
  {
    id: "resource-scheme-case",
    title: "The authentication scheme is case-insensitive",
    clause: "RFC 9110 §11.1",
    async run(conversation) {
      const { status } = await conversation.call(await conversation.accessToken(), { scheme: "bearer" });
      expect(status < 400, `the response is ${status}`);
    },
  },
  {
    id: "resource-no-token",
    title: "Without a token, the response is 401 with a challenge and no error code",
    clause: "RFC 6750 §3, §3.1",
    async run(conversation) {
      const reply = await conversation.send(conversation.resource);
      isRejected(reply);
      expect(!/\berror=/.test(challengeOf(reply)), "the challenge has an error code");
    },
  },
  ...ALTERED.map(([id, title, change]) => ({
    id,
    title,
    clause: "RFC 6750 §3.1",
    async run(conversation: Conversation) {
      const reply = await conversation.call(change(await conversation.accessToken()));
      isRejected(reply);
      expect(/error="?invalid_token"?/.test(challengeOf(reply)), "error is not invalid_token");
    },
  })),
  {
    id: "resource-query",
    title: "A token in the URL is not accepted",
    clause: "RFC 9700 §4.3.2, RFC 6750 §2.3",
    async run(conversation) {
      const query = encode({ access_token: await conversation.accessToken() });
      const { status } = await conversation.send(`${conversation.resource}?${query}`);
      expect(status >= 400, `the response is ${status}`);
    },
  },
  {
    id: "resource-form",
    title: "A token in a form is not accepted",
    clause: "RFC 6750 §2.2",
    isRecommended: true,
    async run(conversation) {
      const form = { access_token: await conversation.accessToken() };
      const { status } = await conversation.send(conversation.resource, { form });
      expect(status >= 400, `the response is ${status}`);
    },
  },
  {
    id: "resource-two-methods",
    title: "A token that is sent in two ways is refused",
    clause: "RFC 6750 §2",
    isRecommended: true,
    async run(conversation) {
      const token = await conversation.accessToken();
      const { status } = await conversation.send(
        `${conversation.resource}?${encode({ access_token: token })}`,
        { headers: { authorization: `Bearer ${token}` } },
      );
      expect(status >= 400, `the response is ${status}`);
    },
  },
  {
    id: "resource-basic",
    title: "The client's credentials are not accepted instead of a token",
    clause: "RFC 6750 §3",
    async run(conversation) {
      isRejected(await conversation.send(conversation.resource, { headers: basic(conversation.client) }));
    },
  },
  {
    id: "resource-malformed",
    title: "A malformed Authorization header is rejected",
    clause: "RFC 6750 §2.1, §3.1",
    async run(conversation) {
      const token = await conversation.accessToken();
      for (const authorization of ["Bearer", `Bearer ${token} ${token}`, token, `Token ${token}`]) {
        const { status } = await conversation.send(conversation.resource, { headers: { authorization } });
        expect(status === 400 || status === 401, `the response is ${status}`);
      }
    },
  },
  {
    id: "resource-refresh-token",
    title: "A refresh token and a code are not accepted as access tokens",
    clause: "RFC 6749 §1.5, §10.4",
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      isRejected(await conversation.call(code));
      const { refresh_token, id_token } = (await conversation.redeem(code, verifier)).body;
      for (const token of [refresh_token, id_token])
        if (typeof token === "string") isRejected(await conversation.call(token));
    },
  },
  {
    id: "resource-audience",
    title: "A token for another resource is rejected",
    clause: "RFC 9700 §2.3, RFC 8707 §2",
    async run(conversation) {
      const { audience, mcp } = conversation.target;
      needs(audience && mcp && mcp !== audience, "no other resource is configured");
      const { status, body } = await conversation.token({ resource: mcp });
      needs(status === 200, "no token is issued for the other resource");
      isRejected(await conversation.call(String(body.access_token)));
    },
  },
  {
    id: "resource-cache",
    title: "Shared caches don't store what a token protects",
    clause: "RFC 9111 §3.5, RFC 6750 §2.3",
    async run(conversation) {
      const { headers } = await conversation.call(await conversation.accessToken());
      const control = headers.get("cache-control") ?? "";
      expect(!/public|s-maxage|must-revalidate/.test(control), `Cache-Control is "${control}"`);
    },
  },
  {
    id: "resource-metadata",
    title: "The protected resource metadata names the resource and the issuer",
    clause: "RFC 9728 §2, §3.3",
    async run(conversation) {
      const { status, headers, body } = await metadataOf(conversation);
      needs(status !== 404, "no protected resource metadata");
      expect(status === 200, `the response is ${status}`);
      expect(headers.get("content-type")?.startsWith("application/json"), "the content type is not JSON");
      const resource = String(body.resource ?? "");
      expect(conversation.resource.startsWith(resource) && resource !== "", `resource is ${resource}`);
      const servers = body.authorization_servers as string[] | undefined;
      expect(servers?.includes(conversation.target.issuer), "authorization_servers does not list the issuer");
    },
  },
  {
    id: "resource-metadata-challenge",
    title: "The challenge names the protected resource metadata",
    clause: "RFC 9728 §5.1",
    isRecommended: true,
    async run(conversation) {
      const challenge = challengeOf(await conversation.send(conversation.resource));
      expect(/resource_metadata="[^"]+"/.test(challenge), "resource_metadata is missing");
    },
  },
  {
    id: "resource-metadata-query",
    title: "The protected resource metadata doesn't offer tokens in the URL",
    clause: "RFC 9728 §2, RFC 9700 §4.3.2",
    async run(conversation) {
      const { status, body } = await metadataOf(conversation);
      needs(status === 200, "no protected resource metadata");
      const methods = (body.bearer_methods_supported as string[] | undefined) ?? [];
      expect(!methods.includes("query"), "bearer_methods_supported lists query");
    },
  },
];

const CREDENTIALED: [id: string, what: string, url: (conversation: Conversation) => string][] = [
  ["cors-token", "the token endpoint", (conversation) => conversation.endpoint("token")],
  ["cors-userinfo", "the userinfo endpoint", (conversation) => conversation.endpoint("userinfo")],
  ["cors-resource", "the resource", (conversation) => conversation.resource],
  ["cors-revocation", "the revocation endpoint", (conversation) => conversation.endpoint("revocation")],
];

export const corsChecks: Check[] = CREDENTIALED.map(([id, what, urlOf]) => ({
  id,
  title: `No other site may send cookies to ${what}`,
  clause: "Fetch §3.2.5, RFC 9700 §4.16",
  async run(conversation) {
    const url = urlOf(conversation);
    const preflight = { origin: ORIGIN, "access-control-request-method": "POST" };
    for (const reply of [
      await conversation.send(url, { headers: { origin: ORIGIN } }),
      await conversation.send(url, { method: "OPTIONS", headers: preflight }),
    ]) {
      const allowed = reply.headers.get("access-control-allow-origin");
      const hasCredentials = reply.headers.get("access-control-allow-credentials") === "true";
      expect(!(hasCredentials && allowed), `${allowed} may send credentials`);
    }
  },
}));
