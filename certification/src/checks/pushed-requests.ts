import type { Check } from "../check.ts";
import { basic, type Conversation, encode, expectError, type Fields, type Reply } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

async function push(conversation: Conversation, changes: Fields = {}, headers?: Record<string, string>) {
  const url = conversation.endpoint("pushed_authorization_request");
  const { fields, verifier } = conversation.authorizationRequest(changes);
  const reply = await conversation.send(url, {
    form: fields,
    headers: headers ?? basic(conversation.client),
  });
  return { reply, verifier, fields };
}

function requestUriOf({ status, body }: Reply): string {
  expect(status === 201 && typeof body.request_uri === "string", `the response is ${status}`);
  return body.request_uri;
}

function urlOf(conversation: Conversation, request_uri: string, client_id = conversation.client.client_id) {
  return `${conversation.endpoint("authorization")}?${encode({ client_id, request_uri })}`;
}

const REFUSED: [id: string, title: string, clause: string, changes: Fields][] = [
  [
    "request-uri",
    "request_uri in a pushed request is refused",
    "RFC 9126 §2.1",
    { request_uri: "urn:example:a" },
  ],
  [
    "redirect",
    "A pushed request with an unregistered redirect URI is refused",
    "RFC 9126 §2.3, §2.4",
    { redirect_uri: "https://evil.example/" },
  ],
  [
    "plain",
    "A pushed request with the method plain is refused",
    "RFC 9700 §2.1.1",
    { code_challenge_method: "plain" },
  ],
  [
    "response-type",
    "A pushed request with an unknown response type is refused",
    "RFC 9126 §2.3",
    { response_type: "unknown" },
  ],
];

export const pushedRequestChecks: Check[] = [
  {
    id: "par-members",
    title: "A pushed request gets 201 with request_uri and expires_in",
    clause: "RFC 9126 §2.2",
    async run(conversation) {
      const { reply } = await push(conversation);
      requestUriOf(reply);
      expect(
        Number.isInteger(reply.body.expires_in) && Number(reply.body.expires_in) > 0,
        "expires_in is no positive integer",
      );
    },
  },
  {
    id: "par-lifetime",
    title: "A pushed request is valid for at most ten minutes",
    clause: "RFC 9126 §2.2",
    isRecommended: true,
    async run(conversation) {
      const { reply } = await push(conversation);
      expect(Number(reply.body.expires_in) <= 600, `expires_in is ${reply.body.expires_in}`);
    },
  },
  {
    id: "par-unique",
    title: "Each pushed request has its own request_uri, which can't be guessed",
    clause: "RFC 9126 §2.2, §7.1",
    async run(conversation) {
      const [one, other] = [
        requestUriOf((await push(conversation)).reply),
        requestUriOf((await push(conversation)).reply),
      ];
      expect(one !== other, "two request URIs are the same");
      expect(one.length >= 22, "a request URI is too short");
    },
  },
  {
    id: "par-authentication",
    title: "A confidential client must authenticate to push a request",
    clause: "RFC 9126 §2.1",
    async run(conversation) {
      expectError((await push(conversation, {}, {})).reply, "invalid_client", "invalid_request");
    },
  },
  {
    id: "par-method",
    title: "Requests are pushed by POST only",
    clause: "RFC 9126 §2.1",
    async run(conversation) {
      const { fields } = conversation.authorizationRequest();
      const url = `${conversation.endpoint("pushed_authorization_request")}?${encode(fields)}`;
      const { status } = await conversation.send(url, { headers: basic(conversation.client) });
      expect(status >= 400, `the response to GET is ${status}`);
    },
  },
  {
    id: "par-no-store",
    title: "Caches don't store the response",
    clause: "RFC 9126 §2.2",
    async run(conversation) {
      const { reply } = await push(conversation);
      const control = reply.headers.get("cache-control") ?? "";
      expect(/no-store|no-cache/.test(control), `Cache-Control is "${control}"`);
    },
  },
  ...REFUSED.map(([id, title, clause, changes]) => ({
    id: `par-${id}`,
    title,
    clause,
    async run(conversation: Conversation) {
      expectError((await push(conversation, changes)).reply);
    },
  })),
  {
    id: "par-flow",
    title: "A pushed request leads to a code",
    clause: "RFC 9126 §4",
    async run(conversation) {
      const { reply, verifier } = await push(conversation);
      const { callback } = await conversation.authorize({}, urlOf(conversation, requestUriOf(reply)));
      const code = callback?.get("code");
      expect(code, "no code is returned");
      expect((await conversation.redeem(code, verifier)).status === 200, "the code is not redeemed");
    },
  },
  {
    id: "par-once",
    title: "A pushed request is used once",
    clause: "RFC 9126 §4, §7.3",
    isRecommended: true,
    async run(conversation) {
      const url = urlOf(conversation, requestUriOf((await push(conversation)).reply));
      const first = await conversation.authorize({}, url);
      needs(first.callback?.get("code"), "no code is returned");
      expect(!(await conversation.authorize({}, url)).callback?.has("code"), "the request is accepted twice");
    },
  },
  {
    id: "par-other-client",
    title: "A request that another client pushed is refused",
    clause: "RFC 9126 §2.2, §4",
    async run(conversation) {
      const { client_id } = conversation.other;
      const uri = requestUriOf((await push(conversation)).reply);
      const reply = await conversation.send(urlOf(conversation, uri, client_id));
      const valid = await conversation.send(
        urlOf(conversation, requestUriOf((await push(conversation)).reply)),
      );
      const isSame = reply.status === valid.status && pathOf(reply) === pathOf(valid);
      expect(!isSame, "the request is accepted from another client");
    },
  },
];

function pathOf({ headers }: Reply): string {
  return headers.get("location")?.replaceAll(/[\w-]{16,}/g, "*") ?? "";
}
