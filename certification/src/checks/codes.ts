import { createRemoteJWKSet, jwtVerify } from "jose";
import type { Check } from "../check.ts";
import { type Callback, type Conversation, challengeOf, expectError, type Fields } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

const CONCURRENT = 10;
const STATES = ["a b+c%20&d=e", "é~\"'<>"];

/** Opens a request that must not return a code; its error, if the browser is redirected, is one of these. */
async function refusal(
  conversation: Conversation,
  changes: Fields,
  ...codes: string[]
): Promise<Callback | undefined> {
  const { callback, fields } = await conversation.authorize(changes);
  if (!callback) return undefined;
  expect(!callback.has("code"), "the request returns a code");
  const error = callback.get("error");
  // RFC 6749 §4.2.2.1: the implicit grant returns errors in the fragment, which only the browser has.
  if (error === null && fields.response_type === "token") return callback;
  expect(error !== null && codes.includes(error), `error is ${error}, not ${codes.join(" or ")}`);
  const [state] = [fields.state].flat();
  expect(callback.get("state") === (state ?? null), "state differs");
  return callback;
}

type Refusal = [id: string, title: string, clause: string, changes: Fields, ...codes: string[]];

const REFUSED: Refusal[] = [
  [
    "code-no-response-type",
    "A request without response_type is refused",
    "RFC 6749 §3.1.1",
    { response_type: undefined },
    "invalid_request",
  ],
  [
    "code-unknown-response-type",
    "An unknown response type is refused",
    "RFC 6749 §3.1.1",
    { response_type: "unknown" },
    "unsupported_response_type",
  ],
  [
    "code-implicit",
    "The response type token is refused",
    "RFC 9700 §2.1.2",
    { response_type: "token" },
    "unsupported_response_type",
    "unauthorized_client",
    "invalid_request",
  ],
  [
    "pkce-plain",
    "The code challenge method plain is refused",
    "RFC 9700 §2.1.1, RFC 7636 §4.4.1",
    { code_challenge: "p".repeat(43), code_challenge_method: "plain" },
    "invalid_request",
  ],
  [
    "pkce-default-method",
    "A code challenge without a method, which means plain, is refused",
    "RFC 9700 §2.1.1, RFC 7636 §4.3",
    { code_challenge_method: undefined },
    "invalid_request",
  ],
  [
    "pkce-unknown-method",
    "An unknown code challenge method is refused",
    "RFC 7636 §4.4.1",
    { code_challenge_method: "S512" },
    "invalid_request",
  ],
  [
    "pkce-short-challenge",
    "A code challenge that is too short is refused",
    "RFC 7636 §4.2",
    { code_challenge: "short" },
    "invalid_request",
  ],
  [
    "code-repeated-scope",
    "A repeated parameter is refused",
    "RFC 6749 §3.1",
    { scope: ["a", "b"] },
    "invalid_request",
  ],
];

export const codeChecks: Check[] = [
  {
    id: "code-flow",
    title: "A code is redeemed for a token that works",
    clause: "RFC 6749 §4.1",
    async run(conversation) {
      const { access_token } = await conversation.userTokens();
      expect(await conversation.isActive(access_token), "the token is not active");
    },
  },
  {
    id: "code-iss",
    title: "The response names the issuer",
    clause: "RFC 9207 §2",
    async run(conversation) {
      const { callback } = await conversation.code();
      const { issuer } = conversation.target;
      expect(callback.get("iss") === issuer, `iss is ${callback.get("iss")}`);
    },
  },
  {
    id: "code-iss-error",
    title: "An error response names the issuer",
    clause: "RFC 9207 §2",
    async run(conversation) {
      const changes = { response_type: "unknown" };
      const callback = await refusal(conversation, changes, "unsupported_response_type", "invalid_request");
      expect(
        needs(callback, "the error is not redirected").get("iss") === conversation.target.issuer,
        "iss is missing",
      );
    },
  },
  {
    id: "code-state",
    title: "The state is returned as it was sent",
    clause: "RFC 6749 §4.1.2",
    async run(conversation) {
      for (const state of STATES) {
        const { callback } = await conversation.code({ state });
        expect(callback.get("state") === state, `state is ${callback.get("state")}`);
      }
    },
  },
  {
    id: "code-no-state",
    title: "Without a state, none is returned",
    clause: "RFC 6749 §4.1.2",
    async run(conversation) {
      const { callback } = await conversation.code({ state: undefined });
      expect(!callback.has("state"), "state is returned");
    },
  },
  {
    id: "code-unknown-parameter",
    title: "An unknown parameter of the authorization request is ignored",
    clause: "RFC 6749 §3.1",
    async run(conversation) {
      await conversation.code({ unknown_parameter: "1" });
    },
  },
  {
    id: "code-no-token",
    title: "The authorization response has no token",
    clause: "RFC 9700 §2.1.2",
    async run(conversation) {
      const { callback } = await conversation.code();
      for (const name of ["access_token", "id_token", "refresh_token"])
        expect(!callback.has(name), `it has ${name}`);
    },
  },
  {
    id: "code-entropy",
    title: "Codes can't be guessed",
    clause: "RFC 6749 §10.10",
    async run(conversation) {
      const { code } = await conversation.code();
      expect(code.length >= 22, `a code has ${code.length} characters`);
    },
  },
  {
    id: "code-unknown-scope",
    title: "An unknown scope is refused or left out",
    clause: "RFC 6749 §3.3",
    async run(conversation) {
      const { callback, verifier } = await conversation.authorize({ scope: "unknown:scope" });
      const code = callback?.get("code");
      if (!callback || !code)
        return expect(!callback || callback.has("error"), "neither a code nor an error is returned");
      const { body } = await conversation.redeem(code, verifier);
      expect(!String(body.scope ?? "unknown:scope").includes("unknown:scope"), "an unknown scope is granted");
    },
  },
  ...REFUSED.map(([id, title, clause, changes, ...codes]) => ({
    id,
    title,
    clause,
    async run(conversation: Conversation) {
      await refusal(conversation, changes, ...codes);
    },
  })),
  {
    id: "pkce-required",
    title: "A request without PKCE is refused",
    clause: "RFC 9700 §2.1.1",
    isRecommended: true,
    async run(conversation) {
      const changes = { code_challenge: undefined, code_challenge_method: undefined };
      await refusal(conversation, changes, "invalid_request");
    },
  },
  {
    id: "pkce-wrong-verifier",
    title: "A wrong code verifier is refused",
    clause: "RFC 7636 §4.6",
    async run(conversation) {
      const { code } = await conversation.code();
      expectError(await conversation.redeem(code, "w".repeat(43)), "invalid_grant");
    },
  },
  {
    id: "pkce-no-verifier",
    title: "A missing code verifier is refused",
    clause: "RFC 7636 §4.6, RFC 9700 §2.1.1",
    async run(conversation) {
      const { code } = await conversation.code();
      expectError(await conversation.redeem(code, undefined), "invalid_grant", "invalid_request");
    },
  },
  {
    id: "pkce-challenge-as-verifier",
    title: "The code challenge is not accepted as the verifier",
    clause: "RFC 7636 §4.6",
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      expectError(await conversation.redeem(code, challengeOf(verifier)), "invalid_grant");
    },
  },
  {
    id: "pkce-downgrade",
    title: "A code verifier without a code challenge is refused",
    clause: "RFC 9700 §2.1.1, §4.8.2",
    async run(conversation) {
      const changes = { code_challenge: undefined, code_challenge_method: undefined };
      const { callback, verifier } = await conversation.authorize(changes);
      const code = needs(callback?.get("code"), "a request without PKCE is refused");
      expectError(await conversation.redeem(code, verifier));
    },
  },
  {
    id: "code-redirect-uri",
    title: "A code is not redeemed with another redirect URI",
    clause: "RFC 6749 §4.1.3",
    async run(conversation) {
      const { code, verifier, fields } = await conversation.code();
      const redirect_uri = `${fields.redirect_uri}/other`;
      expectError(
        await conversation.redeem(code, verifier, { redirect_uri }),
        "invalid_grant",
        "invalid_request",
      );
    },
  },
  {
    id: "code-other-client",
    title: "A code is not redeemed by another client",
    clause: "RFC 6749 §4.1.3",
    async run(conversation) {
      const { other } = conversation;
      const { code, verifier } = await conversation.code();
      expectError(
        await conversation.redeem(code, verifier, {}, {}, other),
        "invalid_grant",
        "unauthorized_client",
      );
    },
  },
  {
    id: "code-client-authentication",
    title: "A confidential client must authenticate to redeem a code",
    clause: "RFC 6749 §4.1.3, §3.2.1",
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      const { client_id } = conversation.client;
      const fields = {
        grant_type: "authorization_code",
        client_id,
        code,
        code_verifier: verifier,
        redirect_uri: conversation.target.redirectUri,
      };
      expectError(
        await conversation.send(conversation.endpoint("token"), { form: fields }),
        "invalid_client",
        "invalid_request",
      );
    },
  },
  {
    id: "code-once",
    title: "A code is redeemed once",
    clause: "RFC 6749 §4.1.2",
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      expect((await conversation.redeem(code, verifier)).status === 200, "the code is not redeemed");
      expectError(await conversation.redeem(code, verifier), "invalid_grant");
    },
  },
  {
    id: "code-race",
    title: `Of ${CONCURRENT} concurrent redemptions of a code, at most one succeeds`,
    clause: "RFC 6749 §4.1.2",
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      const replies = await Promise.all(
        Array.from({ length: CONCURRENT }, () => conversation.redeem(code, verifier)),
      );
      const tokens = new Set(
        replies.filter(({ status }) => status === 200).map(({ body }) => body.access_token),
      );
      expect(tokens.size <= 1, `${tokens.size} tokens were issued`);
    },
  },
  {
    id: "code-reuse-revokes",
    title: "The reuse of a code, later than a retry, revokes its tokens",
    clause: "RFC 6749 §4.1.2",
    isRecommended: true,
    async run(conversation) {
      const { code, verifier } = await conversation.code();
      const { body } = await conversation.redeem(code, verifier);
      // A retry after a lost response may be tolerated for some seconds.
      await new Promise((resolve) => setTimeout(resolve, 11_000));
      await conversation.redeem(code, verifier);
      expect(!(await conversation.isActive(String(body.access_token))), "the access token is still active");
    },
  },
  {
    id: "id-token",
    title: "An ID token names issuer, audience and nonce, and its signature is valid",
    clause: "OpenID Connect Core §2, §3.1.3.7",
    async run(conversation) {
      const { metadata, issuer, scope = "" } = conversation.target;
      needs(metadata.scopes_supported?.includes("openid"), "no OpenID Connect");
      const nonce = "a-nonce";
      const tokens = await conversation.userTokens({ scope: `openid ${scope}`.trim(), nonce });
      const { id_token: token } = tokens as unknown as { id_token?: string };
      expect(token, "the response has no ID token");
      const keys = createRemoteJWKSet(new URL(needs(metadata.jwks_uri, "no jwks_uri")));
      const { payload } = await jwtVerify(token, keys, { issuer, audience: conversation.client.client_id });
      expect(payload.nonce === nonce, `nonce is ${payload.nonce}`);
      expect(payload.exp && payload.iat && payload.sub, "exp, iat or sub is missing");
    },
  },
];
