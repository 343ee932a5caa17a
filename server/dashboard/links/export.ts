import type { Context } from "koa";
import { z } from "zod";
import type { Caller } from "../../../resources/access/actor.ts";
import { readQuery, validate } from "../../../resources/http/validate.ts";
import { listQuery } from "../../../resources/links/list.ts";
import { linkSchema, toView } from "../../../resources/links/schema.ts";
import type { LinkService } from "../../../resources/links/service.ts";
import type { Link } from "../../../resources/links/types.ts";
import { cellsOf, csvHeader, exportName, sendCsv, toCsv } from "../../csv.ts";
import { actorOf, membershipOf } from "../access.ts";
import { withoutEmpty } from "../forms.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const COLUMNS = Object.keys(linkSchema.shape);
const CLICK_COLUMNS = ["date", "link_id", "slug", "clicks", "bot_clicks"];
const PAGE = 100;
const DAY_MS = 24 * 60 * 60 * 1000;

const exportQuery = listQuery.pick({ search: true, tag: true, domain: true }).extend({
  archived: z.union([z.boolean(), z.literal("all")], { error: "must be true, false or all" }).default("all"),
});

export const linkExports: RouteModule = (router, { services: { links }, urls, allow }) => {
  router.get(`${ORGANIZATION}/links.csv`, allow(), readQuery(listQuery), async (ctx) => {
    const { archived, ...texts } = validate(exportQuery, withoutEmpty(ctx.state.query));
    const filter = { ...texts, ...(archived !== "all" && { archived }) };
    sendLinks(ctx, pages(links, actorOf(ctx), filter), urls.short);
  });

  for (const path of [`${ORGANIZATION}/analytics.csv`, `${ORGANIZATION}/links/:link_id/analytics.csv`])
    router.get(path, allow(), async (ctx) => {
      const caller = actorOf(ctx);
      const linkId = ctx.params.link_id as string | undefined;
      const query = withoutEmpty(ctx.query);
      const { from } = await links.rangeOf(caller, query);
      const link = linkId === undefined ? undefined : await links.get(caller, linkId);
      // Where a day begins before it does in UTC, its first clicks are of the day before.
      const clicked = link ? [link] : clickedLinks(links, caller, (from - 1) * DAY_MS);
      const what = link ? `${link.slug.replaceAll("/", "-")}-clicks` : "clicks";
      sendCsv(ctx, exportName(membershipOf(ctx).name, what), clicksAsCsv(links, caller, clicked, query));
    });
};

/** Yields the pages of a list, each as long as possible. */
export async function* pages(links: LinkService, caller: Caller, filter: object): AsyncGenerator<Link[]> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = await links.list(caller, { ...filter, limit: PAGE, cursor: cursor ?? undefined });
    yield page.links;
    cursor = page.nextCursor;
  }
}

type Pages = AsyncIterable<Link[]> | Iterable<Link[]>;

/** Sends links as a CSV file, with the fields of the API. "linkgate import" reads it. */
export function sendLinks(ctx: Context, pages: Pages, shortUrl: string): void {
  sendCsv(ctx, exportName(membershipOf(ctx).name, "links"), linksAsCsv(pages, shortUrl));
}

async function* linksAsCsv(pages: Pages, shortUrl: string) {
  const rowOf = (link: Link) => cellsOf(COLUMNS, { ...toView(link, shortUrl), tags: joinTags(link.tags) });
  yield csvHeader(COLUMNS);
  for await (const page of pages) yield toCsv(page.map(rowOf));
}

/** Joins tags by commas, or writes a JSON array if a tag would not be read as one again. */
function joinTags(tags: string[]): string {
  const isPlain = tags.every((tag) => !/,|^\[|^\s|\s$/.test(tag));
  return isPlain ? tags.join(",") : JSON.stringify(tags);
}

async function* clickedLinks(links: LinkService, caller: Caller, since: number): AsyncGenerator<Link> {
  for await (const page of pages(links, caller, {}))
    for (const link of page) if ((link.lastClickedAt ?? 0) >= since) yield link;
}

/** Formats the clicks of each link and day, if it had any. */
async function* clicksAsCsv(
  links: LinkService,
  caller: Caller,
  clicked: AsyncIterable<Link> | Iterable<Link>,
  query: object,
): AsyncGenerator<string> {
  yield csvHeader(CLICK_COLUMNS);
  for await (const { id, slug } of clicked) {
    const { days } = await links.analytics(caller, id, query);
    const rows = days.filter(({ clicks, bot_clicks }) => clicks + bot_clicks > 0);
    if (rows.length > 0)
      yield toCsv(rows.map(({ date, clicks, bot_clicks }) => [date, id, slug, clicks, bot_clicks]));
  }
}
