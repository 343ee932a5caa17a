import type { RedirectType } from "../../../resources/links/types.ts";
import {
  binaryText,
  CLIENT_ID,
  count,
  flag,
  HOST,
  id,
  integer,
  key,
  longText,
  type RowOf,
  string,
  table,
  text,
  time,
} from "./columns.ts";

export const links = table(
  "links",
  {
    id: id().primary(),
    organization_id: id(),
    slug: key(64).unique(),
    url: text(),
    title: string(255).nullable(),
    tags: binaryText(),
    /** The URL, slug and title with folded case, which searches look at. */
    searched: binaryText(),
    external_id: key(255).nullable(),
    /** JSON. */
    metadata: longText(),
    archived: flag().default(false),
    expires_at: time().nullable(),
    max_clicks: integer().nullable(),
    redirect_type: integer().as<RedirectType>(),
    fallback_url: text().nullable(),
    /** Of people; those of known bots are counted apart. */
    clicks: count().default(0),
    bot_clicks: count().default(0),
    last_clicked_at: time().nullable(),
    /** Incremented by each change except clicks. Used as the entity tag. */
    version: integer().default(1),
    created_by: key(CLIENT_ID),
    /** The client that acted for the user in `created_by`. Null if none did. */
    created_via: key(CLIENT_ID).nullable(),
    created_at: time(),
    updated_at: time(),
    /** A deleted link keeps its row so its slug is never reused. */
    deleted_at: time().nullable(),
    disabled_at: time().nullable(),
    disabled_reason: string(255).nullable(),
  },
  { indexes: [["organization_id", "id"]] },
);
export type LinkRow = RowOf<typeof links>;

/** On SQLite: the only row, whose version rises with each change that affects redirects. */
export type LinkChangesRow = { id: number; version: number };

export const clickCounts = table(
  "click_counts",
  {
    organization_id: id(),
    /** Empty for the sum of all links. */
    link_id: id(),
    /** The names of `clicks` and `bots` are hours, those of `agent` a device, a browser and an operating system. */
    dimension: key(8).as<"clicks" | "bots" | "referrer" | "country" | "agent" | "link">(),
    /** Days since January 1, 1970, UTC. */
    day: integer(),
    /** Empty if it is unknown. */
    name: key(HOST),
    clicks: count(),
  },
  { primary: ["organization_id", "link_id", "dimension", "day", "name"], isClustered: true },
);
export type ClickCountRow = RowOf<typeof clickCounts>;

export const LINK_TABLES = [links, clickCounts] as const;
