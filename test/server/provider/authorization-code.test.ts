import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  isAcceptedByApi,
  pkce,
  redeemCode,
  refresh,
  runCodeFlow,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { purgeExpired } from "../../harness/database/purge.ts";
import { rounds } from "../../harness/rounds.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);

const { challenge } = await pkce();

test.after.always(() => service.close());

test("a duplicate redemption within 10 seconds is rejected and revokes nothing", async (t) => {
  const { code, accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const { status, body } = await redeemCode(service, app, code);
  t.is(status, 400);
  t.is(body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial("a replay after the retry window revokes every token issued from the code", async (t) => {
  const { code, accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const bystander = await runCodeFlow(service, app, user);
  const { body: refreshed } = await refresh(service, app, refreshToken);
  advanceClock(11_000);
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.false(await isAcceptedByApi(service, accessToken));
  t.false(await isAcceptedByApi(service, refreshed.access_token));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, bystander.accessToken));
});

test.serial("a replay is detected long after the code has expired, even after a purge", async (t) => {
  const { code, refreshToken } = await runCodeFlow(service, app, user);
  advanceClock(20 * 24 * 3600_000);
  await purgeExpired(service.storage);
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
});

const HARMLESS_REPLAYS: [what: string, changes: Fields][] = [
  ["a wrong verifier", { code_verifier: "x".repeat(43) }],
  ["no verifier", { code_verifier: undefined }],
  ["a different redirect_uri", { redirect_uri: "https://app.example.com/other" }],
];

for (const [what, changes] of HARMLESS_REPLAYS) {
  test.serial(`a replay with ${what} revokes nothing`, async (t) => {
    const { code, accessToken, refreshToken } = await runCodeFlow(service, app, user);
    advanceClock(11_000);
    t.is((await redeemCode(service, app, code, changes)).status, 400);
    t.true(await isAcceptedByApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).status, 200);
  });
}

test.serial("another client can neither redeem a code nor revoke its tokens", async (t) => {
  const fresh = await codeFor(service, app, user);
  t.is((await redeemCode(service, other.app, fresh)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, fresh)).status, 200);
  const { code, accessToken } = await runCodeFlow(service, app, user);
  advanceClock(11_000);
  t.is((await redeemCode(service, other.app, code)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, accessToken));
});

test.serial("a replay with a wrong client secret revokes nothing", async (t) => {
  const { code, accessToken } = await runCodeFlow(service, app, user);
  advanceClock(11_000);
  t.is((await redeemCode(service, { ...app, clientSecret: "lgs_wrong" }, code)).status, 401);
  t.true(await isAcceptedByApi(service, accessToken));
});

test.serial("a code expires after 60 seconds", async (t) => {
  const code = await codeFor(service, app, user);
  advanceClock(58_000);
  t.is((await redeemCode(service, app, code)).status, 200);
  const late = await codeFor(service, app, user);
  advanceClock(61_000);
  t.is((await redeemCode(service, app, late)).body.error, "invalid_grant");
});

const WRONG_URIS: Record<string, string> = {
  "a different path": "https://app.example.com/other",
  "a trailing slash": `${REDIRECT_URI}/`,
  "a query": `${REDIRECT_URI}?x=1`,
  "upper-case letters": REDIRECT_URI.toUpperCase(),
};

for (const [what, uri] of Object.entries(WRONG_URIS)) {
  test(`a redemption whose redirect_uri has ${what} is rejected and leaves the code valid`, async (t) => {
    const code = await codeFor(service, app, user);
    const { status, body } = await redeemCode(service, app, code, { redirect_uri: uri });
    t.is(status, 400);
    t.is(body.error, "invalid_grant");
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

test("a client with one redirect URI may omit it from the authorization request, the token request, or both", async (t) => {
  for (const changes of [{}, { redirect_uri: undefined }]) {
    const code = await codeFor(service, app, user, { changes });
    t.is(
      (await redeemCode(service, app, code, { redirect_uri: undefined })).status,
      200,
      JSON.stringify(changes),
    );
  }
  const code = await codeFor(service, app, user, { changes: { redirect_uri: undefined } });
  t.is((await redeemCode(service, app, code)).status, 200);
});

test("a client with several redirect URIs must repeat it in the token request", async (t) => {
  const { app: two, user: owner } = await createApp(service, [REDIRECT_URI, "https://app.example.com/2"]);
  const code = await codeFor(service, two, owner);
  t.is((await redeemCode(service, two, code, { redirect_uri: undefined })).status, 400);
  t.is((await redeemCode(service, two, code)).status, 200);
});

test("a loopback port in the token request must match the authorization request", async (t) => {
  const { app: native, user: owner } = await createApp(service, ["http://127.0.0.1/cb"]);
  const redirect_uri = "http://127.0.0.1:5000/cb";
  const code = await codeFor(service, native, owner, { changes: { redirect_uri } });
  const other = await redeemCode(service, native, code, { redirect_uri: "http://127.0.0.1:5001/cb" });
  t.is(other.body.error, "invalid_grant");
  t.is((await redeemCode(service, native, code, { redirect_uri })).status, 200);
});

const INVALID_CODES: Record<string, (code: string) => string | undefined> = {
  "a missing code": () => undefined,
  "an unknown code": () => "x".repeat(43),
  "a truncated code": (code) => code.slice(0, -1),
  "a code with an extra character": (code) => `${code}A`,
  "a code with a trailing space": (code) => `${code} `,
  "a code with a NUL": (code) => `${code}\u0000`,
  "a code with a letter in the other case": (code) =>
    code.replace(/[a-z]/i, (letter) => String.fromCharCode(letter.charCodeAt(0) ^ 32)),
  "a code of 10 KB": (code) => code.repeat(250),
};

for (const [what, mutate] of Object.entries(INVALID_CODES)) {
  test(`${what} is rejected and leaves the real code valid`, async (t) => {
    const code = await codeFor(service, app, user);
    const { status, body } = await redeemCode(service, app, code, { code: mutate(code) });
    t.is(status, 400);
    t.regex(String(body.error), /^invalid_(grant|request)$/);
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

const browser = new TestBrowser(service.url);

const ROUNDS = rounds(10, 50);
const CONCURRENCY = 20;

test.serial(
  "concurrent redemptions of one code succeed exactly once, with tokens that stay valid",
  async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const code = await codeFor(service, app, user, { browser });
      const answers = await Promise.all(
        Array.from({ length: CONCURRENCY }, () => redeemCode(service, app, code)),
      );
      const [winner, ...others] = answers.filter(({ status }) => status === 200);
      t.deepEqual(others, []);
      for (const { status, body } of answers.filter((answer) => answer !== winner)) {
        t.is(status, 400);
        t.is(body.error, "invalid_grant");
      }
      t.true(await isAcceptedByApi(service, winner?.body.access_token));
      t.is((await refresh(service, app, String(winner?.body.refresh_token))).status, 200);
    }
  },
);

test.serial(
  "concurrent replays after the retry window are rejected and revoke every token of the grant",
  async (t) => {
    const code = await codeFor(service, app, user, { browser });
    const { body } = await redeemCode(service, app, code);
    advanceClock(11_000);
    const answers = await Promise.all(
      Array.from({ length: CONCURRENCY }, () => redeemCode(service, app, code)),
    );
    for (const { status, body } of answers) {
      t.is(status, 400);
      t.is(body.error, "invalid_grant");
    }
    t.false(await isAcceptedByApi(service, body.access_token));
    t.is((await refresh(service, app, String(body.refresh_token))).status, 400);
  },
);

test.serial("invalid redemptions don't prevent a concurrent valid one", async (t) => {
  const other = await createApp(service);
  for (let round = 0; round < 5; round++) {
    const code = await codeFor(service, app, user, { browser });
    const answers = await Promise.all(
      Array.from({ length: CONCURRENCY }, (_, index) => {
        if (index % 4 === 0) return redeemCode(service, app, code);
        if (index % 4 === 1) return redeemCode(service, other.app, code);
        return redeemCode(service, app, code, { code_verifier: "x".repeat(43) });
      }),
    );
    const winners = answers.filter(({ status }) => status === 200);
    t.is(winners.length, 1);
    t.true(answers.every(({ status }) => status === 200 || status === 400));
    t.true(await isAcceptedByApi(service, winners[0]?.body.access_token));
  }
});

const INVALID_REQUESTS: [what: string, changes: Fields][] = [
  ["no challenge", { code_challenge: undefined, code_challenge_method: undefined }],
  ["an empty challenge", { code_challenge: "" }],
  ["a method without a challenge", { code_challenge: undefined }],
  ["the method plain", { code_challenge_method: "plain" }],
  ["a challenge without a method", { code_challenge_method: undefined }],
  ["an unknown method", { code_challenge_method: "S512" }],
  ["a lower-case method", { code_challenge_method: "s256" }],
  ["a challenge that is too short", { code_challenge: challenge.slice(1) }],
  ["a challenge that is too long", { code_challenge: "x".repeat(129) }],
  ["a challenge with invalid characters", { code_challenge: `${challenge.slice(1)}=` }],
];

for (const [what, changes] of INVALID_REQUESTS) {
  test(`a request with ${what} is rejected with invalid_request`, async (t) => {
    const { browser } = await browserOf(service, user);
    const page = await browser.open(authorizeUrl(service, app, changes));
    const query = new URL(page.url).searchParams;
    t.is(query.get("error"), "invalid_request");
    t.is(query.get("iss"), service.url);
  });
}

test("a native app must also send a code challenge", async (t) => {
  const { app: native } = await createApp(service, ["http://127.0.0.1/cb"]);
  const changes = { redirect_uri: "http://127.0.0.1:5000/cb", code_challenge: undefined };
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, native, changes));
  t.is(new URL(page.url).searchParams.get("error"), "invalid_request");
});

const INVALID_VERIFIERS: Record<string, string | undefined> = {
  "a missing verifier": undefined,
  "an empty verifier": "",
  "a different verifier": "x".repeat(43),
  "a verifier that is too short": VERIFIER.slice(1),
  "a verifier that is too long": VERIFIER.repeat(3),
  "a verifier with invalid characters": `${VERIFIER.slice(1)}!`,
  "a verifier with a NUL": `${VERIFIER}\u0000`,
  "a verifier with a trailing space": `${VERIFIER} `,
  "an upper-case verifier": VERIFIER.toUpperCase(),
  "the challenge itself": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
};

for (const [what, verifier] of Object.entries(INVALID_VERIFIERS)) {
  test(`${what} is rejected and leaves the code valid`, async (t) => {
    const code = await codeFor(service, app, user);
    const wrong = await redeemCode(service, app, code, { code_verifier: verifier });
    t.is(wrong.status, 400);
    t.regex(String(wrong.body.error), /^invalid_(grant|request)$/);
    t.false("access_token" in wrong.body);
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

test("a repeated verifier is rejected", async (t) => {
  const code = await codeFor(service, app, user);
  const { status, body } = await redeemCode(service, app, code, {
    code_verifier: [VERIFIER, "x".repeat(43)],
  });
  t.is(status, 400);
  t.is(body.error, "invalid_request");
});

test("a wrong verifier after the redemption revokes nothing", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  t.is((await redeemCode(service, app, code, { code_verifier: "x".repeat(43) })).status, 400);
  t.true(await isAcceptedByApi(service, body.access_token));
});

test("the verifier of one authorization can't redeem the code of another", async (t) => {
  const other = await pkce();
  const url = authorizeUrl(service, app, { code_challenge: other.challenge });
  const code = (await allow(service, user, url)).searchParams.get("code") ?? "";
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, code, { code_verifier: other.verifier })).status, 200);
});
