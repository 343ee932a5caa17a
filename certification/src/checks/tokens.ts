import type { Check } from "../check.ts";
import { basic, type Conversation, expectError, type Fields } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

type Refusal = [id: string, title: string, clause: string, fields: Fields, ...codes: string[]];

const REFUSED: Refusal[] = [
  [
    "token-no-grant",
    "A request without grant_type is refused",
    "RFC 6749 §5.2",
    { grant_type: undefined },
    "invalid_request",
  ],
  [
    "token-unknown-grant",
    "An unknown grant type is refused",
    "RFC 6749 §5.2",
    { grant_type: "unknown" },
    "unsupported_grant_type",
  ],
  [
    "token-password-grant",
    "The password grant is refused",
    "RFC 9700 §2.4",
    { grant_type: "password", username: "user", password: "password" },
    "unsupported_grant_type",
    "unauthorized_client",
  ],
  [
    "token-repeated",
    "A repeated parameter is refused",
    "RFC 6749 §3.2",
    { grant_type: ["client_credentials", "client_credentials"] },
    "invalid_request",
  ],
  [
    "token-unknown-code",
    "An unknown code is refused",
    "RFC 6749 §5.2",
    { grant_type: "authorization_code", code: "unknown", code_verifier: "v".repeat(43) },
    "invalid_grant",
    "unauthorized_client",
    "invalid_request",
  ],
  [
    "token-unknown-refresh",
    "An unknown refresh token is refused",
    "RFC 6749 §5.2",
    { grant_type: "refresh_token", refresh_token: "unknown" },
    "invalid_grant",
    "unauthorized_client",
  ],
  [
    "token-unknown-resource",
    "An unknown resource is refused",
    "RFC 8707 §2",
    { resource: "https://unknown.example/" },
    "invalid_target",
  ],
  [
    "token-resource-fragment",
    "A resource with a fragment is refused",
    "RFC 8707 §2",
    { resource: "https://unknown.example/#a" },
    "invalid_target",
    "invalid_request",
  ],
];

export const tokenChecks: Check[] = [
  {
    id: "token-members",
    title: "A token response has access_token, token_type and expires_in",
    clause: "RFC 6749 §5.1",
    async run(conversation) {
      const { status, body } = await conversation.token();
      expect(status === 200, `the response is ${status}`);
      expect(typeof body.access_token === "string", "access_token is missing");
      expect(typeof body.token_type === "string", "token_type is missing");
      const { expires_in: seconds } = body;
      expect(
        seconds === undefined || (Number.isInteger(seconds) && Number(seconds) > 0),
        "expires_in is no positive integer",
      );
    },
  },
  {
    id: "token-expiry",
    title: "An access token is valid for at most a day",
    clause: "RFC 9700 §2.2, RFC 6749 §10.3",
    isRecommended: true,
    async run(conversation) {
      const { body } = await conversation.token();
      expect(Number(body.expires_in) <= 86_400, `expires_in is ${body.expires_in}`);
    },
  },
  {
    id: "token-no-refresh",
    title: "Client credentials get no refresh token",
    clause: "RFC 6749 §4.4.3",
    isRecommended: true,
    async run(conversation) {
      expect(!("refresh_token" in (await conversation.token()).body), "the response has a refresh token");
    },
  },
  {
    id: "token-entropy",
    title: "Access tokens can't be guessed",
    clause: "RFC 6749 §10.10",
    async run(conversation) {
      const [one, other] = [await conversation.accessToken(), await conversation.accessToken()];
      expect(one !== other, "two tokens are the same");
      // 128 bits in base64url
      expect(one.length >= 22, `a token has ${one.length} characters`);
      const common = [...one].findIndex((char, index) => char !== other[index]);
      expect(one.includes(".") || common <= one.length - 22, "two tokens differ in too few characters");
    },
  },
  {
    id: "token-charset",
    title: "Access tokens have only visible ASCII characters",
    clause: "RFC 6749 Appendix A.12",
    async run(conversation) {
      expect(/^[\x21-\x7e]+$/.test(await conversation.accessToken()), "a token has other characters");
    },
  },
  {
    id: "token-post",
    title: "The token endpoint takes POST only",
    clause: "RFC 6749 §3.2",
    async run(conversation) {
      const url = `${conversation.endpoint("token")}?grant_type=client_credentials`;
      const { status, body } = await conversation.send(url, { headers: basic(conversation.client) });
      expect(status >= 400 && !("access_token" in body), `the response to GET is ${status}`);
    },
  },
  {
    id: "token-form",
    title: "The parameters have to be a form",
    clause: "RFC 6749 §4.4.2, Appendix B",
    async run(conversation) {
      const { scope } = conversation.target;
      const { status, body } = await conversation.send(conversation.endpoint("token"), {
        method: "POST",
        headers: { ...basic(conversation.client), "content-type": "application/json" },
        body: JSON.stringify({ grant_type: "client_credentials", scope }),
      });
      expect(status >= 400 && !("access_token" in body), `the response to JSON is ${status}`);
    },
  },
  {
    id: "token-query",
    title: "Parameters in the URL are not used",
    clause: "RFC 6749 §3.2, Appendix B",
    async run(conversation) {
      const url = `${conversation.endpoint("token")}?grant_type=client_credentials`;
      const { status } = await conversation.send(url, { form: {}, headers: basic(conversation.client) });
      expect(status >= 400, `the response is ${status}`);
    },
  },
  {
    id: "token-unknown-parameter",
    title: "An unknown parameter is ignored",
    clause: "RFC 6749 §3.2",
    async run(conversation) {
      expect((await conversation.token({ unknown_parameter: "1" })).status === 200, "the request is refused");
    },
  },
  {
    id: "token-empty-parameter",
    title: "A parameter without a value counts as omitted",
    clause: "RFC 6749 §3.2",
    async run(conversation) {
      expect(
        (await conversation.token({ unknown_parameter: "", code: "" })).status === 200,
        "the request is refused",
      );
    },
  },
  {
    id: "token-unknown-scope",
    title: "An unknown scope is refused, or the response names the scope that was granted",
    clause: "RFC 6749 §3.3, §5.1",
    async run(conversation) {
      const reply = await conversation.token({ scope: "unknown:scope" });
      if (reply.status !== 200) return expectError(reply, "invalid_scope");
      expect(reply.body.scope !== undefined, "scope is missing");
      expect(!String(reply.body.scope).includes("unknown:scope"), "an unknown scope is granted");
    },
  },
  ...REFUSED.map(([id, title, clause, fields, ...codes]) => ({
    id,
    title,
    clause,
    async run(conversation: Conversation) {
      if ("resource" in fields) needs(conversation.target.audience, "no resource indicator is configured");
      expectError(await conversation.token({ scope: undefined, ...fields }), ...codes);
    },
  })),
];
