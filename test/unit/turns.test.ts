import test from "ava";
import { parseLargeJson } from "../../resources/http/json-body.ts";
import { createLinksInBulk } from "../../resources/links/bulk.ts";
import type { Link } from "../../resources/links/types.ts";
import { limitsOf } from "../../resources/plans.ts";
import { turnsDuring } from "../harness/turns.ts";

const MB = 2 ** 20;
const KB = 1024;
const LINKS = 100;

const link = { url: `https://example.com/${"x".repeat(8 * KB)}` };
const largest = JSON.stringify({ links: Array.from({ length: LINKS }, () => link) });
const bodies: Record<string, string> = {
  "links in bulk": largest,
  spaces: "1".padEnd(MB),
  "one string": JSON.stringify("x".repeat(MB - 2)),
  "escaped quotes": JSON.stringify('"'.repeat(MB / 2 - 1)),
};
for (const [name, body] of Object.entries(bodies))
  test(`others are served at least once per 64 KB that a body of ${name} is looked through`, async (t) => {
    const turns = await turnsDuring(() => parseLargeJson(Buffer.from(body)));
    t.true(turns >= Math.floor(body.length / (64 * KB)), `${turns} turns`);
  });

test("of links in bulk, at most five are created before others are served", async (t) => {
  const created: number[] = [0];
  let isWorking = true;
  const nextTurn = () => {
    created.push(0);
    if (isWorking) setImmediate(nextTurn);
  };
  setImmediate(nextTurn);
  const create = async () => {
    created.push((created.pop() as number) + 1);
    return {} as Link;
  };
  const results = await createLinksInBulk(JSON.parse(largest), limitsOf("premium"), async () => {}, create);
  isWorking = false;
  t.is(results.length, LINKS);
  t.true(Math.max(...created) <= 5);
});
