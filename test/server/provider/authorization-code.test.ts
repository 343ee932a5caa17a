import test from "ava";
import { advanceClock } from "../harness/clock.ts";
import { REDIRECT_URI } from "../harness/flow.ts";
import {
  codeFor,
  createApp,
  type Fields,
  newTokens,
  opensApi,
  redeemCode,
  refresh,
} from "../harness/oauth.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);
test.after.always(() => service.close());

test("sec 34: a code is redeemed once; a duplicate in time gets nothing and ends nothing", async (t) => {
  const { code, accessToken, refreshToken } = await newTokens(service, app, user);
  const { status, body } = await redeemCode(service, app, code);
  t.is(status, 400);
  t.is(body.error, "invalid_grant");
  t.true(await opensApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).status, 200);
});

test.serial("sec 35: a replay after the window ends all that came of the code", async (t) => {
  const { code, accessToken, refreshToken } = await newTokens(service, app, user);
  const bystander = await newTokens(service, app, user);
  const { body: refreshed } = await refresh(service, app, refreshToken);
  advanceClock(11_000);
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.false(await opensApi(service, accessToken));
  t.false(await opensApi(service, refreshed.access_token));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.true(await opensApi(service, bystander.accessToken));
});

test.serial("sec 35: a replay is recognised long after the code's own minute", async (t) => {
  const { code, refreshToken } = await newTokens(service, app, user);
  advanceClock(20 * 24 * 3600_000);
  await service.storage.sweep();
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
});

const HARMLESS: [what: string, changes: Fields][] = [
  ["a wrong verifier", { code_verifier: "x".repeat(43) }],
  ["no verifier", { code_verifier: undefined }],
  ["another redirect_uri", { redirect_uri: "https://app.example.com/other" }],
];

for (const [what, changes] of HARMLESS) {
  test.serial(`sec 36: a replay with ${what} ends nothing`, async (t) => {
    const { code, accessToken, refreshToken } = await newTokens(service, app, user);
    advanceClock(11_000);
    t.is((await redeemCode(service, app, code, changes)).status, 400);
    t.true(await opensApi(service, accessToken));
    t.is((await refresh(service, app, refreshToken)).status, 200);
  });
}

test.serial("sec 36, 40: another client can neither redeem a code nor end what came of it", async (t) => {
  const fresh = await codeFor(service, app, user);
  t.is((await redeemCode(service, other.app, fresh)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, fresh)).status, 200);
  const { code, accessToken } = await newTokens(service, app, user);
  advanceClock(11_000);
  t.is((await redeemCode(service, other.app, code)).body.error, "invalid_grant");
  t.true(await opensApi(service, accessToken));
});

test.serial("sec 36: a replay with a wrong secret ends nothing", async (t) => {
  const { code, accessToken } = await newTokens(service, app, user);
  advanceClock(11_000);
  t.is((await redeemCode(service, { ...app, clientSecret: "lgs_wrong" }, code)).status, 401);
  t.true(await opensApi(service, accessToken));
});

test.serial("sec 39: a code lives for 60 s", async (t) => {
  const code = await codeFor(service, app, user);
  advanceClock(58_000);
  t.is((await redeemCode(service, app, code)).status, 200);
  const late = await codeFor(service, app, user);
  advanceClock(61_000);
  t.is((await redeemCode(service, app, late)).body.error, "invalid_grant");
});

const WRONG_URIS: Record<string, string> = {
  "another one": "https://app.example.com/other",
  "one with a slash behind it": `${REDIRECT_URI}/`,
  "one with a query": `${REDIRECT_URI}?x=1`,
  "one in capitals": REDIRECT_URI.toUpperCase(),
};

for (const [what, uri] of Object.entries(WRONG_URIS)) {
  test(`sec 40, 41: a redirect_uri that is ${what} does not redeem a code`, async (t) => {
    const code = await codeFor(service, app, user);
    const { status, body } = await redeemCode(service, app, code, { redirect_uri: uri });
    t.is(status, 400);
    t.is(body.error, "invalid_grant");
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

test("sec 41: with one registered URI it may be left out, at both steps or at either", async (t) => {
  for (const changes of [{}, { redirect_uri: undefined }]) {
    const code = await codeFor(service, app, user, { changes });
    t.is((await redeemCode(service, app, code, { redirect_uri: undefined })).status, 200);
  }
  const code = await codeFor(service, app, user, { changes: { redirect_uri: undefined } });
  t.is((await redeemCode(service, app, code)).status, 200);
});

test("sec 41: with two registered URIs it may not be left out", async (t) => {
  const { app: two, user: person } = await createApp(service, [REDIRECT_URI, "https://app.example.com/2"]);
  const code = await codeFor(service, two, person);
  t.is((await redeemCode(service, two, code, { redirect_uri: undefined })).status, 400);
  t.is((await redeemCode(service, two, code)).status, 200);
});

test("sec 40: a loopback port is the one of the authorization", async (t) => {
  const { app: native, user: person } = await createApp(service, ["http://127.0.0.1/cb"]);
  const redirect_uri = "http://127.0.0.1:5000/cb";
  const code = await codeFor(service, native, person, { changes: { redirect_uri } });
  const other = await redeemCode(service, native, code, { redirect_uri: "http://127.0.0.1:5001/cb" });
  t.is(other.body.error, "invalid_grant");
  t.is((await redeemCode(service, native, code, { redirect_uri })).status, 200);
});

const NOT_CODES: Record<string, (code: string) => string | undefined> = {
  "no code": () => undefined,
  "an unknown code": () => "x".repeat(43),
  "a shortened code": (code) => code.slice(0, -1),
  "a lengthened code": (code) => `${code}A`,
  "a code with a space behind it": (code) => `${code} `,
  "a code with a NUL": (code) => `${code}\u0000`,
  "a code in another case": (code) =>
    code.replace(/[a-z]/i, (letter) => String.fromCharCode(letter.charCodeAt(0) ^ 32)),
  "a code of 10 kB": (code) => code.repeat(250),
};

for (const [what, mutate] of Object.entries(NOT_CODES)) {
  test(`sec 50: ${what} gets no token and leaves the right one good`, async (t) => {
    const code = await codeFor(service, app, user);
    const { status, body } = await redeemCode(service, app, code, { code: mutate(code) });
    t.is(status, 400);
    t.regex(String(body.error), /^invalid_(grant|request)$/);
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}
