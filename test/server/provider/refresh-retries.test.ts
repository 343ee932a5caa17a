import test from "ava";
import { createApp, isAcceptedByApi, refresh, runCodeFlow } from "../../harness/clients/oauth.ts";
import {
  connectRegistered,
  type RegisteredClient,
  register,
  requestTokens,
} from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");
const host = await register(service, { redirect_uris: ["http://127.0.0.1/callback"] });
const { app, user: appUser } = await createApp(service);

test.after.always(() => service.close());

const browser = new TestBrowser(service.url);
const appBrowser = new TestBrowser(service.url);
const SECOND = 1000;
const DAY = 24 * 3600 * SECOND;

type Pair = { access_token?: unknown; refresh_token?: unknown };

const use = (token: unknown, client: RegisteredClient = host) =>
  requestTokens(service, client, { grant_type: "refresh_token", refresh_token: String(token) });

/** Returns a refresh token of the public client. */
async function newRefreshToken(): Promise<string> {
  const resource = `${service.url}/v1`;
  const { status, body, text } = await connectRegistered(service, host, user, { resource, browser });
  if (status !== 200) throw new Error(`no tokens: ${text}`);
  return String(body.refresh_token);
}

/** Returns a refresh token of a confidential client in the last 30% of its lifetime, when it is rotated. */
async function oldRefreshToken(): Promise<string> {
  const { refreshToken } = await runCodeFlow(service, app, appUser, {
    changes: { prompt: "consent" },
    browser: appBrowser,
  });
  advanceClock(22 * DAY);
  return refreshToken;
}

/** Returns what doesn't work of some pairs of tokens. */
async function brokenOf(
  pairs: Pair[],
  exchange: (token: unknown) => ReturnType<typeof use>,
): Promise<string[]> {
  const broken: string[] = [];
  for (const [index, { access_token, refresh_token }] of pairs.entries()) {
    if (!(await isAcceptedByApi(service, access_token))) broken.push(`access token ${index}`);
    if ((await exchange(refresh_token)).status !== 200) broken.push(`refresh token ${index}`);
  }
  return broken;
}

for (const size of [2, 5, 10]) {
  for (const seconds of [0, 5, 15, 35, 60, 119]) {
    test.serial(
      `each of ${size} concurrent refreshes and one ${seconds} s later gets its own tokens`,
      async (t) => {
        const token = await newRefreshToken();
        const burst = await atOnce(size, () => use(token));
        advanceClock(seconds * SECOND);
        const answers = [...burst, await use(token)];
        t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
        const pairs = answers.map(({ body }) => body);
        for (const name of ["access_token", "refresh_token"] as const) {
          t.is(new Set(pairs.map((pair) => pair[name])).size, size + 1, name);
        }
        t.deepEqual(await brokenOf(pairs, use), []);
      },
    );
  }
}

test.serial(
  "a second process of a host that still has the former token gets tokens for 120 seconds",
  async (t) => {
    const token = await newRefreshToken();
    const first = await use(token);
    advanceClock(30 * SECOND);
    const next = await use(first.body.refresh_token);
    advanceClock(89 * SECOND);
    const second = await use(token);
    t.is(second.status, 200);
    t.deepEqual(await brokenOf([next.body, second.body], use), []);
  },
);

test.serial("a refresh whose response was lost can be repeated, as often as it gets lost", async (t) => {
  let token = await newRefreshToken();
  for (let round = 0; round < 5; round++) {
    await use(token);
    advanceClock(45 * SECOND);
    await use(token);
    advanceClock(45 * SECOND);
    const { status, body } = await use(token);
    t.is(status, 200);
    token = String(body.refresh_token);
  }
});

for (const [what, seconds, token, exchange] of [
  ["public", 120, newRefreshToken, use],
  ["confidential", 10, oldRefreshToken, (value: unknown) => refresh(service, app, String(value))],
] as const) {
  test.serial(
    `of a ${what} client, a refresh token is used once and retried ten times, no more`,
    async (t) => {
      const value = await token();
      const answers = await atOnce(20, () => exchange(value));
      const pairs = answers.filter(({ status }) => status === 200).map(({ body }) => body);
      t.is(new Set(pairs.map((pair) => pair.refresh_token)).size, 11);
      for (const { status, body } of answers.filter((one) => one.status !== 200))
        t.is(`${status} ${body.error}`, "400 invalid_grant");
      advanceClock((seconds - 1) * SECOND);
      t.is((await exchange(value)).body.error, "invalid_grant");
      t.deepEqual(
        await brokenOf(pairs, exchange),
        [],
        "one use too many changes nothing within the time for retries",
      );
    },
  );

  test.serial(
    `of a ${what} client, the eleventh use in turn gets tokens, and the twelfth none`,
    async (t) => {
      const value = await token();
      const statuses: number[] = [];
      for (let count = 1; count <= 12; count++) statuses.push((await exchange(value)).status);
      t.deepEqual(statuses, [...Array(11).fill(200), 400]);
    },
  );

  test.serial(
    `of a ${what} client, a use ${seconds + 1} s after the first one revokes the family`,
    async (t) => {
      const value = await token();
      const first = await exchange(value);
      advanceClock((seconds - 1) * SECOND);
      const retry = await exchange(value);
      t.is(retry.status, 200);
      // The time counts from the first use, not from the last one.
      advanceClock(2 * SECOND);
      t.is((await exchange(value)).body.error, "invalid_grant");
      for (const { body } of [first, retry]) {
        t.false(await isAcceptedByApi(service, body.access_token));
        t.is((await exchange(body.refresh_token)).body.error, "invalid_grant");
      }
    },
  );
}
