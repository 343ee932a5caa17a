import { randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import type { Check } from "../check.ts";
import { type Conversation, encode, expectError } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

const ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const credentialsOf = ({ client }: Conversation) => ({ ...client });

function withoutHeader(conversation: Conversation, fields: Record<string, string | string[]>, url?: string) {
  const { scope, audience: resource } = conversation.target;
  const form = { grant_type: "client_credentials", scope, resource, ...fields };
  return conversation.send(url ?? conversation.endpoint("token"), { form });
}

function lists({ target }: Conversation, method: string): boolean {
  return (target.metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]).includes(method);
}

/** An assertion of the client, signed in a way that must be refused. */
async function forge({ target, client }: Conversation, alg: "none" | "HS256"): Promise<string> {
  const { client_id: id, client_secret: secret } = client;
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: id, sub: id, aud: target.issuer, jti: randomUUID(), iat: now, exp: now + 60 };
  if (alg === "HS256")
    return new SignJWT(claims).setProtectedHeader({ alg }).sign(Buffer.from(secret.padEnd(32, ".")));
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg })}.${part(claims)}.`;
}

export const clientChecks: Check[] = [
  {
    id: "client-basic",
    title: "A client authenticates with HTTP Basic",
    clause: "RFC 6749 §2.3.1",
    async run(conversation) {
      expect((await conversation.token()).status === 200, "the client gets no token");
    },
  },
  {
    id: "client-post",
    title: "A client authenticates in the form, if client_secret_post is listed",
    clause: "RFC 6749 §2.3.1, RFC 8414 §2",
    async run(conversation) {
      conversation.needsClientCredentials();
      needs(lists(conversation, "client_secret_post"), "client_secret_post is not listed");
      const { status } = await withoutHeader(conversation, credentialsOf(conversation));
      expect(status === 200, `the response is ${status}`);
    },
  },
  {
    id: "client-encoded",
    title: "The client ID may be percent-encoded in HTTP Basic",
    clause: "RFC 6749 §2.3.1",
    async run(conversation) {
      conversation.needsClientCredentials();
      const { client_id: id, client_secret: secret } = conversation.client;
      const encoded = [...id]
        .map((char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`)
        .join("");
      const authorization = `Basic ${Buffer.from(`${encoded}:${encodeURIComponent(secret)}`).toString("base64")}`;
      const { status } = await conversation.token({}, { headers: { authorization } });
      expect(status === 200, `the response is ${status}`);
    },
  },
  {
    id: "client-wrong-secret",
    title: "A wrong secret gets 401 with invalid_client and a challenge",
    clause: "RFC 6749 §5.2",
    async run(conversation) {
      const wrong = { ...conversation.client, client_secret: "wrong" };
      const reply = await conversation.token({}, {}, wrong);
      expect(reply.status === 401, `the response is ${reply.status}`);
      expectError(reply, "invalid_client");
      expect(/^basic\b/i.test(reply.headers.get("www-authenticate") ?? ""), "no challenge for Basic");
    },
  },
  ...(
    [
      [
        "client-wrong-secret-post",
        "A wrong secret in the form",
        (id) => ({ client_id: id, client_secret: "wrong" }),
      ],
      ["client-empty-secret", "An empty secret", (id) => ({ client_id: id, client_secret: "" })],
      ["client-no-secret", "A confidential client without its secret", (id) => ({ client_id: id })],
    ] as [string, string, (id: string) => Record<string, string>][]
  ).map(([id, what, fields]) => ({
    id,
    title: `${what} is refused`,
    clause: "RFC 6749 §3.2.1, §5.2",
    async run(conversation: Conversation) {
      const reply = await withoutHeader(conversation, fields(conversation.client.client_id));
      expectError(reply, "invalid_client", "invalid_request");
    },
  })),
  {
    id: "client-missing",
    title: "A request without a client is refused",
    clause: "RFC 6749 §3.2.1, §5.2",
    async run(conversation) {
      expectError(await withoutHeader(conversation, {}), "invalid_client", "invalid_request");
    },
  },
  {
    id: "client-unknown",
    title: "An unknown client is refused like a wrong secret",
    clause: "RFC 6749 §5.2",
    async run(conversation) {
      const unknown = { client_id: `${conversation.client.client_id}0`, client_secret: "wrong" };
      const reply = await conversation.token({}, {}, unknown);
      expectError(reply, "invalid_client");
      expect(reply.status === 401, `the response is ${reply.status}`);
    },
  },
  {
    id: "client-case",
    title: "The client ID is case-sensitive",
    clause: "RFC 6749 §2.2, Appendix A.1",
    async run(conversation) {
      const { client_id: id, client_secret } = conversation.client;
      const client_id = id === id.toUpperCase() ? id.toLowerCase() : id.toUpperCase();
      needs(client_id !== id, "the client ID has no letters");
      expectError(await conversation.token({}, {}, { client_id, client_secret }), "invalid_client");
    },
  },
  {
    id: "client-two-methods",
    title: "Two authentication methods in one request are refused",
    clause: "RFC 6749 §2.3",
    async run(conversation) {
      expectError(await conversation.token(credentialsOf(conversation)), "invalid_request", "invalid_client");
    },
  },
  {
    id: "client-mixed-ids",
    title: "Different client IDs in one request are refused",
    clause: "RFC 6749 §2.3",
    async run(conversation) {
      const { client_id } = conversation.other;
      expectError(await conversation.token({ client_id }), "invalid_request", "invalid_client");
    },
  },
  {
    id: "client-secret-in-url",
    title: "A secret in the URL is not accepted",
    clause: "RFC 6749 §2.3.1",
    async run(conversation) {
      const url = `${conversation.endpoint("token")}?${encode(credentialsOf(conversation))}`;
      expectError(await withoutHeader(conversation, {}, url));
    },
  },
  {
    id: "client-repeated-id",
    title: "A repeated client_id is refused",
    clause: "RFC 6749 §3.2",
    async run(conversation) {
      const { client_id: id, client_secret } = conversation.client;
      expectError(await withoutHeader(conversation, { client_id: [id, id], client_secret }));
    },
  },
  ...(["none", "HS256"] as const).map((alg) => ({
    id: `client-assertion-${alg.toLowerCase()}`,
    title: `A client assertion with the algorithm ${alg} is refused`,
    clause: alg === "none" ? "RFC 7523 §3, RFC 8725 §3.2" : "RFC 7523 §3, RFC 8725 §3.1",
    async run(conversation: Conversation) {
      const fields = { client_assertion_type: ASSERTION, client_assertion: await forge(conversation, alg) };
      const isOffered = lists(conversation, "client_secret_jwt");
      needs(alg === "none" || !isOffered, "client_secret_jwt is listed");
      const { client_id } = conversation.client;
      expectError(await withoutHeader(conversation, { ...fields, client_id }));
    },
  })),
  {
    id: "client-assertion-type",
    title: "An unknown client_assertion_type is refused",
    clause: "RFC 7521 §4.2",
    async run(conversation) {
      const { client_id } = conversation.client;
      const fields = { client_id, client_assertion_type: "urn:example:unknown", client_assertion: "a.b.c" };
      expectError(await withoutHeader(conversation, fields));
    },
  },
  {
    id: "client-malformed-basic",
    title: "Malformed HTTP Basic credentials are refused",
    clause: "RFC 7617 §2, RFC 6749 §5.2",
    async run(conversation) {
      for (const value of ["Basic", "Basic !", `Basic ${Buffer.from("no-colon").toString("base64")}`])
        expectError(await conversation.token({}, { headers: { authorization: value } }));
    },
  },
  {
    id: "client-error-charset",
    title: "Errors contain only the allowed characters",
    clause: "RFC 6749 §5.2",
    async run(conversation) {
      const { client_id } = conversation.client;
      const { body } = await conversation.token({}, {}, { client_id, client_secret: 'quote"é' });
      expect(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/.test(String(body.error)), "error");
      expect(
        /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(String(body.error_description ?? "")),
        "error_description",
      );
    },
  },
];
