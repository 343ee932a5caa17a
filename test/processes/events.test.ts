import test from "ava";
import type { z } from "zod";
import type { eventPageSchema } from "../../resources/webhooks/event-list.ts";
import { type Api, apiAt } from "../harness/clients/api.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";
import { until } from "../harness/webhooks.ts";

export const databases = "all";

const cluster = await startCluster();
test.after.always(() => cluster.close());

type Page = z.output<typeof eventPageSchema>;
type Event = Page["data"][number];

// SQLite has one writer at a time, so there is less to interleave.
const LINKS = engine === "sqlite" ? 60 : 200;
const READERS = 4;

/** Follows the list until an event matches, and returns all events until then. */
async function follow(api: Api, query: string, isLast: (events: Event[]) => boolean): Promise<Event[]> {
  const events: Event[] = [];
  let cursor = "";
  return until(async () => {
    const { body } = await api.get<Page>(`/v1/events?${query}${cursor}`);
    events.push(...body.data);
    cursor = `&cursor=${body.resume_cursor}`;
    return isLast(events) ? events : undefined;
  });
}

test("readers of two servers get each event of concurrent writers on both once, in the same order", async (t) => {
  const app = await cluster.createOrganization();
  const token = await cluster.token(app);
  const turn = (index: number) => apiAt((cluster.resources[index % 2] as { url: string }).url, token);
  const isLast = (events: Event[]) => events.at(-1)?.data.title === "last";
  const readers = Array.from({ length: READERS }, (_, index) =>
    follow(turn(index), `limit=${index * 20 + 3}`, isLast),
  );
  const links = await atOnce(LINKS, async (index) => {
    const { id } = await turn(index).createLink();
    const path = `/v1/links/${id}`;
    const updated = await turn(index + 1).send("PATCH", path, { json: { title: "New" } });
    t.is(updated.status, 200, updated.text);
    if (index % 3 === 0) {
      const deleted = await turn(index).send("DELETE", path);
      t.is(deleted.status, 204, deleted.text);
    }
    return id;
  });
  await turn(0).createLink({ title: "last" });

  const [first = [], ...others] = await Promise.all(readers);
  const expected = links.flatMap((id, index) => [
    `link.created ${id}`,
    `link.updated ${id}`,
    ...(index % 3 === 0 ? [`link.deleted ${id}`] : []),
  ]);
  const names = first.slice(0, -1).map(({ type, data }) => `${type} ${data.id}`);
  t.deepEqual(names.toSorted(), expected.toSorted());
  t.is(new Set(first.map(({ id }) => id)).size, first.length);
  for (const events of others) t.deepEqual(events, first);
});
