import type { Check } from "../check.ts";
import { type Conversation, encode, expectError, type Tokens } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

const MEASURED = 200;
/** Longer than a request takes. */
const LATE_MS = 500;
const CONCURRENT = 20;

/** Returns tokens with a refresh token; some servers issue one only for `offline_access`. */
async function refreshable(conversation: Conversation): Promise<Tokens & { refresh_token: string }> {
  const { scope = "", metadata } = conversation.target;
  needs(metadata.grant_types_supported?.includes("refresh_token"), "no refresh tokens");
  const tokens = await conversation.userTokens();
  if (tokens.refresh_token) return { ...tokens, refresh_token: tokens.refresh_token };
  const offline = await conversation.userTokens({
    scope: `${scope} openid offline_access`.trim(),
    prompt: "consent",
  });
  return { ...offline, refresh_token: needs(offline.refresh_token, "no refresh token is issued") };
}

export const refreshChecks: Check[] = [
  {
    id: "refresh",
    title: "A refresh token gets an access token that works",
    clause: "RFC 6749 §6",
    async run(conversation) {
      const { refresh_token } = await refreshable(conversation);
      const { status, body } = await conversation.refresh(refresh_token);
      expect(status === 200, `the response is ${status}`);
      expect(await conversation.isActive(String(body.access_token)), "the access token is not active");
    },
  },
  {
    id: "refresh-other-client",
    title: "A refresh token is not accepted from another client",
    clause: "RFC 6749 §6, §10.4",
    async run(conversation) {
      const { other } = conversation;
      const { refresh_token } = await refreshable(conversation);
      expectError(
        await conversation.refresh(refresh_token, {}, {}, other),
        "invalid_grant",
        "unauthorized_client",
      );
    },
  },
  {
    id: "refresh-client-authentication",
    title: "A confidential client must authenticate to refresh",
    clause: "RFC 6749 §6, §10.4",
    async run(conversation) {
      const { refresh_token } = await refreshable(conversation);
      const { client_id } = conversation.client;
      const form = { grant_type: "refresh_token", refresh_token, client_id };
      expectError(
        await conversation.send(conversation.endpoint("token"), { form }),
        "invalid_client",
        "invalid_request",
      );
    },
  },
  {
    id: "refresh-more-scope",
    title: "A refresh can't widen the scope",
    clause: "RFC 6749 §6",
    async run(conversation) {
      const { refresh_token, scope = "" } = await refreshable(conversation);
      const { metadata } = conversation.target;
      const granted = scope.split(" ");
      const more = metadata.scopes_supported?.find((one) => !granted.includes(one));
      const reply = await conversation.refresh(refresh_token, {
        scope: `${scope} ${more ?? "unknown:scope"}`.trim(),
      });
      if (reply.status !== 200) return expectError(reply, "invalid_scope");
      const names = String(reply.body.scope ?? "").split(" ");
      expect(
        names.every((name) => granted.includes(name)),
        `the new scope is ${reply.body.scope}`,
      );
    },
  },
  {
    id: "refresh-substitution",
    title: "An access token is not accepted as a refresh token",
    clause: "RFC 6749 §6",
    async run(conversation) {
      const { access_token } = await refreshable(conversation);
      expectError(await conversation.refresh(access_token), "invalid_grant");
    },
  },
  {
    id: "refresh-revoked",
    title: "A revoked refresh token is refused",
    clause: "RFC 7009 §2",
    async run(conversation) {
      const { refresh_token } = await refreshable(conversation);
      await conversation.revoke(refresh_token);
      expectError(await conversation.refresh(refresh_token), "invalid_grant");
    },
  },
  {
    id: "refresh-race",
    title: `Of ${CONCURRENT} concurrent refreshes, at most one leaves a new refresh token that works`,
    clause: "RFC 9700 §2.2.2, §4.14.2",
    async run(conversation) {
      const { refresh_token: first } = await refreshable(conversation);
      const send = () => conversation.refresh(first);
      const replies = await Promise.all(Array.from({ length: CONCURRENT }, send));
      const issued = replies
        .map(({ body }) => body.refresh_token)
        .filter((token) => typeof token === "string");
      const next = [...new Set(issued)].filter((token) => token !== first);
      let working = 0;
      for (const token of next) if ((await conversation.refresh(token)).status === 200) working++;
      expect(working <= 1, `${working} new refresh tokens work`);
    },
  },
  {
    id: "refresh-reuse",
    title: "If refresh tokens are rotated, the reuse of an earlier one ends the grant",
    clause: "RFC 9700 §2.2.2, §4.14.2",
    async run(conversation) {
      const { refresh_token: first } = await refreshable(conversation);
      const { body } = await conversation.refresh(first);
      const second = body.refresh_token;
      needs(
        typeof second === "string" && second !== first,
        "refresh tokens of confidential clients are not rotated",
      );
      // A retry after a lost response may be tolerated for some seconds.
      await new Promise((resolve) => setTimeout(resolve, 11_000));
      expectError(await conversation.refresh(first), "invalid_grant");
      expectError(await conversation.refresh(String(second)), "invalid_grant");
    },
  },
];

export const introspectionChecks: Check[] = [
  {
    id: "introspection-active",
    title: "An active token is described",
    clause: "RFC 7662 §2.2",
    async run(conversation) {
      const { status, body } = await conversation.introspect(await conversation.accessToken());
      expect(status === 200 && body.active === true, "the token is not active");
      const id = body.client_id;
      expect(id === undefined || id === conversation.client.client_id, `client_id is ${id}`);
      expect(body.exp === undefined || Number.isInteger(body.exp), "exp is no integer");
      expect(body.scope === undefined || typeof body.scope === "string", "scope is no string");
    },
  },
  {
    id: "introspection-unknown",
    title: "Of an unknown token, only active is said, which is false",
    clause: "RFC 7662 §2.2",
    async run(conversation) {
      const { status, body } = await conversation.introspect("unknown-token");
      expect(status === 200 && body.active === false, "active is not false");
      expect(Object.keys(body).length === 1, "the response says more");
    },
  },
  {
    id: "introspection-authentication",
    title: "Introspection requires authorization",
    clause: "RFC 7662 §2.1, §4",
    async run(conversation) {
      const token = await conversation.accessToken();
      const { status, body } = await conversation.send(conversation.endpoint("introspection"), {
        form: { token },
      });
      expect(status >= 400 && body.active === undefined, `the response is ${status}`);
    },
  },
  {
    id: "introspection-wrong-secret",
    title: "Introspection with a wrong secret gets 401",
    clause: "RFC 7662 §2.3",
    async run(conversation) {
      const wrong = { ...conversation.client, client_secret: "wrong" };
      const { status } = await conversation.introspect(await conversation.accessToken(), {}, wrong);
      expect(status === 401, `the response is ${status}`);
    },
  },
  {
    id: "introspection-other-client",
    title: "A client learns nothing about the tokens of another client",
    clause: "RFC 7662 §4, RFC 9700 §2.2",
    async run(conversation) {
      const { body } = await conversation.introspect(
        await conversation.accessToken(),
        {},
        conversation.other,
      );
      expect(body.active !== true, "the token of another client is active");
    },
  },
  {
    id: "introspection-hint",
    title: "A wrong hint doesn't hide a token",
    clause: "RFC 7662 §2.1",
    async run(conversation) {
      const token = await conversation.accessToken();
      const { body } = await conversation.introspect(token, { token_type_hint: "refresh_token" });
      expect(body.active === true, "the token is not active");
    },
  },
  {
    id: "introspection-no-token",
    title: "A request without a token is refused",
    clause: "RFC 7662 §2.1",
    async run(conversation) {
      const { status } = await conversation.introspect("", {});
      expect(status === 400, `the response is ${status}`);
    },
  },
  {
    id: "introspection-get",
    title: "A token in the URL is not introspected",
    clause: "RFC 7662 §2.1",
    async run(conversation) {
      const url = `${conversation.endpoint("introspection")}?${encode({ token: await conversation.accessToken() })}`;
      expect((await conversation.send(url)).body.active === undefined, "a token in the URL is introspected");
    },
  },
  {
    id: "introspection-altered",
    title: "An altered token is not active",
    clause: "RFC 7662 §2.2",
    async run(conversation) {
      const token = await conversation.accessToken();
      for (const altered of [
        `${token}x`,
        token.slice(0, -1),
        token.slice(0, -4).toUpperCase() + token.slice(-4),
      ])
        if (altered !== token)
          expect((await conversation.introspect(altered)).body.active === false, "it is active");
    },
  },
];

export const revocationChecks: Check[] = [
  {
    id: "revocation",
    title: "A revoked token is inactive",
    clause: "RFC 7009 §2",
    async run(conversation) {
      const token = await conversation.accessToken();
      expect((await conversation.revoke(token)).status === 200, "the response is not 200");
      expect(!(await conversation.isActive(token)), "the token is still active");
    },
  },
  {
    id: "revocation-resource",
    title: "A revoked token is rejected by the resource",
    clause: "RFC 7009 §2",
    async run(conversation) {
      const token = await conversation.accessToken();
      expect((await conversation.call(token)).status < 400, "the token doesn't work before");
      await conversation.revoke(token);
      expect((await conversation.call(token)).status === 401, "the token still works");
    },
  },
  {
    id: "revocation-latency",
    title: `A revocation counts at the next request, for 99 % of ${MEASURED} tokens`,
    clause: "RFC 7009 §2",
    async run(conversation) {
      const useToken = conversation.target.resource
        ? async (token: string) => (await conversation.call(token)).status < 400
        : (token: string) => conversation.isActive(token);
      const delays: number[] = [];
      const isSlow = (delay: number) => delay >= LATE_MS;
      while (delays.length < MEASURED && delays.filter(isSlow).length <= MEASURED / 100) {
        const token = await conversation.accessToken();
        expect(await useToken(token), "the token doesn't work before");
        await conversation.revoke(token);
        const revokedAt = performance.now();
        while ((await useToken(token)) && performance.now() - revokedAt < 10 * LATE_MS);
        delays.push(performance.now() - revokedAt);
        conversation.exchanges.length = 0;
      }
      const p99 = delays.toSorted((one, other) => other - one)[MEASURED / 100] ?? 0;
      expect(p99 < LATE_MS, `revoked tokens still worked ${Math.round(p99)} ms later`);
    },
  },
  {
    id: "revocation-unknown",
    title: "An unknown token gets 200",
    clause: "RFC 7009 §2.2",
    async run(conversation) {
      const { status } = await conversation.revoke("unknown-token");
      expect(status === 200, `the response is ${status}`);
    },
  },
  {
    id: "revocation-twice",
    title: "A token that was revoked before gets 200",
    clause: "RFC 7009 §2.2",
    async run(conversation) {
      const token = await conversation.accessToken();
      await conversation.revoke(token);
      expect((await conversation.revoke(token)).status === 200, "the response is not 200");
    },
  },
  {
    id: "revocation-hint",
    title: "A token is revoked despite a wrong or unknown hint",
    clause: "RFC 7009 §2.1",
    async run(conversation) {
      for (const token_type_hint of ["refresh_token", "unknown"]) {
        const token = await conversation.accessToken();
        const { status } = await conversation.revoke(token, { token_type_hint });
        if (status === 400) continue; // unsupported_token_type is allowed
        expect(
          !(await conversation.isActive(token)),
          `the token is still active after the hint ${token_type_hint}`,
        );
      }
    },
  },
  {
    id: "revocation-other-client",
    title: "A client can't revoke the token of another client",
    clause: "RFC 7009 §2.1",
    async run(conversation) {
      const token = await conversation.accessToken();
      await conversation.revoke(token, {}, conversation.other);
      expect(await conversation.isActive(token), "the token of another client was revoked");
    },
  },
  {
    id: "revocation-authentication",
    title: "A confidential client must authenticate to revoke",
    clause: "RFC 7009 §2.1",
    async run(conversation) {
      const token = await conversation.accessToken();
      const { client_id } = conversation.client;
      await conversation.send(conversation.endpoint("revocation"), { form: { token, client_id } });
      expect(await conversation.isActive(token), "the token was revoked without authentication");
    },
  },
  {
    id: "revocation-no-token",
    title: "A request without a token is refused",
    clause: "RFC 7009 §2.1, §2.2.1",
    async run(conversation) {
      const form = { token_type_hint: "access_token" };
      const reply = await conversation.send(conversation.endpoint("revocation"), { form });
      expect(reply.status >= 400, `the response is ${reply.status}`);
    },
  },
  {
    id: "revocation-refresh",
    title: "Revoking a refresh token also revokes the access tokens of its grant",
    clause: "RFC 7009 §2.1",
    isRecommended: true,
    async run(conversation) {
      const { refresh_token, access_token } = await refreshable(conversation);
      await conversation.revoke(refresh_token);
      expect(!(await conversation.isActive(access_token)), "the access token is still active");
    },
  },
  {
    id: "revocation-race",
    title: `${CONCURRENT} concurrent revocations of a token all succeed`,
    clause: "RFC 7009 §2.2",
    async run(conversation) {
      const token = await conversation.accessToken();
      const replies = await Promise.all(Array.from({ length: CONCURRENT }, () => conversation.revoke(token)));
      expect(
        replies.every(({ status }) => status === 200),
        "a response is not 200",
      );
      expect(!(await conversation.isActive(token)), "the token is still active");
    },
  },
];
