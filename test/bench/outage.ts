/** `TEST_POSTGRES_URL=… TEST_DATABASE=postgres node test/bench/outage.ts`: the share of redirects served in an outage. */
import { openStorage } from "../../adapters/index.ts";
import { storeManyLinks } from "../harness/database/many-links.ts";
import { createTestStorage } from "../harness/database/storage.ts";
import { startTcpProxy } from "../harness/tcp-proxy.ts";

const LINKS = 100_000;
const BEFORE = 300_000;
const CONCURRENCY = 64;
const OUTAGE_MS = 20_000;

// The n-th most popular link is followed in proportion to 1/n.
const sums = new Float64Array(LINKS);
for (let n = 0; n < LINKS; n++) sums[n] = (sums[n - 1] ?? 0) + 1 / (n + 1);

function popular(): number {
  const at = Math.random() * (sums[LINKS - 1] as number);
  let [low, high] = [0, LINKS - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sums[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

const storage = await createTestStorage();
const id = await storage.createOrganization();
await storeManyLinks(storage.knex, id, LINKS, (n) => ({ url: `https://example.com/articles/2026/${n}` }));
const proxy = await startTcpProxy(storage.url);
const own = openStorage(proxy.through(storage.url), storage.encryptionKey);
const follow = () => own.links.resolve(`${id.slice(-8)}-${popular()}`);

for (let done = 0; done < BEFORE; done += CONCURRENCY)
  await Promise.all(Array.from({ length: CONCURRENCY }, follow));
await proxy.cut("freeze");
const end = performance.now() + OUTAGE_MS;
let [served, refused, longest] = [0, 0, 0];
async function visit() {
  while (performance.now() < end) {
    const start = performance.now();
    await follow().then(
      () => {
        served++;
        longest = Math.max(longest, performance.now() - start);
      },
      () => refused++,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
// Each visit waits by itself, so that those that are refused late don't keep others from being counted.
const visits: Promise<void>[] = [];
for (let lane = 0; lane < CONCURRENCY; lane++) visits.push(visit());
await Promise.all(visits);
const share = ((100 * served) / (served + refused)).toFixed(1);
console.log(
  `${share} % of ${served + refused} redirects were served, the slowest after ${longest.toFixed(0)} ms`,
);
await proxy.restore();
await own.close();
await proxy.close();
await storage.close();
