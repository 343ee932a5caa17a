import test from "ava";
import { newAddress } from "../../harness/clients/addresses.ts";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { advanceClock, MINUTE_MS } from "../../harness/clock.ts";
import { startWithStorage } from "../../harness/database/service-storage.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const limited = { RATE_LIMIT: "on", TRUST_PROXY: "1" };
const { service, settings } = await startWithStorage(limited);
const other = await startTestService(settings);
const app = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));

const FREE_FAILURES = 10;
const PER_NETWORK = 50;
const PASSWORD = "spring";
const limitedProblem = { status: 429, code: "rate_limited" };

const protect = () => api.createLink({ password: PASSWORD });

function enter({ slug }: LinkBody, password: string, address: string, { url } = service, accept = "*/*") {
  const headers = { "content-type": "application/x-www-form-urlencoded", "x-forwarded-for": address, accept };
  return apiAt(url).send("POST", `/${slug}`, { body: new URLSearchParams({ password }).toString(), headers });
}

test.serial("wrong passwords from an address are delayed, at every service on the database", async (t) => {
  const [link, another] = [await protect(), await protect()];
  const address = newAddress();
  for (let failures = 1; failures <= FREE_FAILURES + 1; failures++)
    t.is((await enter(link, "guess", address, failures % 2 ? service : other)).status, 403);
  for (const one of [service, other]) {
    const refused = await enter(link, PASSWORD, address, one);
    isProblem(t, refused, limitedProblem);
    t.is(refused.headers.get("retry-after"), "2");
  }
  const page = await enter(link, PASSWORD, address, service, "text/html");
  t.is(page.status, 429);
  t.truthy(page.headers.get("retry-after"));
  t.regex(page.text, /Too many wrong passwords\. Try again in 2 seconds\./);

  t.is((await enter(link, PASSWORD, newAddress())).status, 303, "another address isn't delayed");
  t.is((await enter(another, PASSWORD, address)).status, 303, "another link isn't");
  advanceClock(2000);
  t.is((await enter(link, "guess", address)).status, 403);
  t.is((await enter(link, "guess", address, other)).headers.get("retry-after"), "4");
  advanceClock(4000);
  t.is((await enter(link, PASSWORD, address)).status, 303);
  t.is((await enter(link, "guess", address)).status, 403, "the right password ends the delays");
});

test.serial("guesses at many links from one network are limited", async (t) => {
  const address = newAddress();
  const statuses: number[] = [];
  for (let links = 0; links <= PER_NETWORK; links++)
    statuses.push((await enter(await protect(), "guess", address)).status);
  t.deepEqual([...new Set(statuses.slice(0, PER_NETWORK))], [403]);
  t.is(statuses.at(-1), 429);
});

// The last one, because the token of the others expires.
test.serial("visitors are never blocked for good, and the count is forgotten after a day", async (t) => {
  const { signInFailures } = service.storage;
  const attempt = () => signInFailures.attemptLink("lnk_1", "203.0.113");
  for (let failures = 1; failures <= 120; failures++) {
    t.is((await attempt()).outcome, "allowed");
    advanceClock(15 * MINUTE_MS);
  }
  await attempt();
  t.is((await attempt()).outcome, "delayed");
  advanceClock(24 * 60 * MINUTE_MS);
  await service.storage.purgeExpired();
  for (let failures = 1; failures <= FREE_FAILURES; failures++) t.is((await attempt()).outcome, "allowed");
});
