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
// Enough to reach the delays and the limits.
const ATTEMPTS = 30;
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

const REQUESTS: Record<
  string,
  { path: string; fields: Record<string, string>; expected: Record<string, number[]> }
> = {
  "a wrong password": {
    path: "/auth/login",
    fields: { password: "not the password" },
    expected: { "text/html": [400, 429], "application/json": [401, 429] },
  },
  "a forgotten password": {
    path: "/auth/forgot-password",
    fields: {},
    expected: { "text/html": [202, 429], "application/json": [202, 429] },
  },
};

for (const [what, { path, fields, expected }] of Object.entries(REQUESTS)) {
  for (const accept of ["text/html", "application/json"]) {
    test.serial(
      `${what} (${accept}) doesn't reveal whether the username exists, up to the limits`,
      async (t) => {
        const name = `${Object.keys(REQUESTS).indexOf(what)}${accept.length}`;
        const [known, unknown] = [`${KNOWN}${name}`, `${UNKNOWN}${name}`];
        await service.createUser([], known);
        const statuses = new Set<number>();
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          const [one, other] = [
            await seen(path, accept, { ...fields, username: known }, `198.18.${name}.${attempt}`),
            await seen(path, accept, { ...fields, username: unknown }, `198.19.${name}.${attempt}`),
          ];
          t.deepEqual(one, other, `attempt ${attempt}`);
          statuses.add(one.status);
        }
        t.deepEqual([...statuses], expected[accept]);
      },
    );
  }
}
