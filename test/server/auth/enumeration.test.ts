import test from "ava";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
  SMTP_URL: "smtp://127.0.0.1:9",
  SMTP_FROM: "linkgate@example.com",
});
test.after.always(() => service.close());

const KNOWN = "known-username";
const UNKNOWN = "other-username";
const VOLATILE = ["date", "x-request-id", "keep-alive", "content-length", "etag", "retry-after"];

/** Sends a form or JSON as a stranger, and returns what the stranger sees, with a placeholder for what is random. */
async function seen(path: string, accept: string, fields: Record<string, string>, address: string) {
  const isPage = accept === "text/html";
  const response = await fetch(service.url + path, {
    method: "POST",
    redirect: "manual",
    headers: {
      accept,
      "x-forwarded-for": address,
      ...(isPage ? { origin: service.url } : { "content-type": "application/json" }),
    },
    body: isPage ? new URLSearchParams(fields) : JSON.stringify(fields),
  });
  const headers = [...response.headers].filter(([name]) => !VOLATILE.includes(name));
  const cookies = response.headers.getSetCookie().map((line) => line.replace(/=[^;]*/, ""));
  const body = (await response.text())
    .replaceAll(fields.username ?? "", "USERNAME")
    .replaceAll(/[\w-]{8}-[\w-]{4}-[\w-]{4}-[\w-]{4}-[\w-]{12}/g, "REQUEST")
    .replaceAll(/\b\d+ (?=seconds?|minutes?)/g, "N ")
    .replaceAll(/v1\.[\w.-]{20,}|[\w-]{40,}(\.[\w-]+)*/g, "RANDOM");
  const stable = headers
    .filter(([name]) => name !== "set-cookie")
    .map(([name, value]) => [name, value.replaceAll(/nonce-[\w+/=-]+/g, "nonce")]);
  // The number of seconds depends on when the first attempt was.
  const hasRetryAfter = response.headers.has("retry-after");
  return { status: response.status, headers: stable, hasRetryAfter, cookies, body };
}

let networks = 0;
const newAddress = () => `198.18.${networks++}.1`;

type Attempts = {
  path: string;
  fields: Record<string, string>;
  /** Enough to reach the limit. */
  count: number;
  /** Whether each attempt is from another network, so that only the delays of the account apply. */
  isDistributed?: boolean;
  expected: Record<string, number[]>;
};

const REQUESTS: Record<string, Attempts> = {
  "a wrong password from one network": {
    path: "/auth/login",
    fields: { password: "not the password" },
    count: 8,
    expected: { "text/html": [400, 429], "application/json": [401, 429] },
  },
  "a wrong password from many networks": {
    path: "/auth/login",
    fields: { password: "not the password" },
    count: 14,
    isDistributed: true,
    expected: { "text/html": [400, 429], "application/json": [401, 429] },
  },
  "a forgotten password": {
    path: "/auth/forgot-password",
    fields: {},
    count: 12,
    expected: { "text/html": [202, 429], "application/json": [202, 429] },
  },
};

for (const [what, { path, fields, count, isDistributed, expected }] of Object.entries(REQUESTS)) {
  for (const accept of ["text/html", "application/json"]) {
    test.serial(
      `${what} (${accept}) doesn't reveal whether the username exists, up to the limits`,
      async (t) => {
        const name = `${Object.keys(REQUESTS).indexOf(what)}${accept.length}`;
        const [known, unknown] = [`${KNOWN}${name}`, `${UNKNOWN}${name}`];
        await service.createUser([], known);
        const statuses = new Set<number>();
        let [here, there] = [newAddress(), newAddress()];
        for (let attempt = 0; attempt < count; attempt++) {
          if (isDistributed) [here, there] = [newAddress(), newAddress()];
          const [one, other] = [
            await seen(path, accept, { ...fields, username: known }, here),
            await seen(path, accept, { ...fields, username: unknown }, there),
          ];
          t.deepEqual(one, other, `attempt ${attempt}`);
          statuses.add(one.status);
        }
        t.deepEqual([...statuses], expected[accept]);
      },
    );
  }
}
