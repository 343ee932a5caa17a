import type { ClickProperty, RedirectType } from "../../../resources/links/types.ts";
import * as t from "./columns.ts";

export const links = t.table(
  "links",
  {
    id: t.id().primary(),
    organization_id: t.id(),
    /** The host of the organization's domain that has the link. Null for the server's own. */
    domain: t.key(t.HOST).nullable(),
    slug: t.key(255),
    /** What a request is looked up by, see `addressOf`. */
    address: t.key(t.ID + 256).unique(),
    url: t.text(),
    title: t.string(255).nullable(),
    tags: t.binaryText(),
    /** The URL, slug and title with folded case, which searches look at. */
    searched: t.binaryText(),
    external_id: t.key(255).nullable(),
    /** JSON. */
    metadata: t.longText(),
    archived: t.flag().default(false),
    expires_at: t.time().nullable(),
    max_clicks: t.integer().nullable(),
    redirect_type: t.integer().as<RedirectType>(),
    fallback_url: t.text().nullable(),
    forward_query: t.flag().default(true),
    forward_path: t.flag().default(false),
    /** JSON. */
    rules: t.longText(),
    /** JSON. */
    card: t.longText().nullable(),
    /** Argon2id, as a PHC string. */
    password_hash: t.string(255).nullable(),
    /** Of people; those of known bots are counted apart. */
    clicks: t.count().default(0),
    bot_clicks: t.count().default(0),
    last_clicked_at: t.time().nullable(),
    /** Incremented by each change except clicks. Used as the entity tag. */
    version: t.integer().default(1),
    created_by: t.key(t.CLIENT_ID),
    /** The client that acted for the user in `created_by`. Null if none did. */
    created_via: t.key(t.CLIENT_ID).nullable(),
    created_at: t.time(),
    updated_at: t.time(),
    /** A deleted link keeps its row so its slug is never reused. */
    deleted_at: t.time().nullable(),
    disabled_at: t.time().nullable(),
    disabled_reason: t.string(255).nullable(),
  },
  { indexes: [["organization_id", "id"]] },
);
export type LinkRow = t.RowOf<typeof links>;

/** On SQLite: the only row, whose version rises with each change that affects redirects. */
export type LinkChangesRow = { id: number; version: number };

type NamedProperty = Exclude<ClickProperty, "device" | "browser" | "operating_system">;

export const clickCounts = t.table(
  "click_counts",
  {
    organization_id: t.id(),
    /** Empty for the sum of all links. */
    link_id: t.id(),
    /** The names of `clicks` and `bots` are hours, those of `agent` a device, a browser and an operating system. */
    dimension: t.key(12).as<"clicks" | "bots" | "agent" | "link" | NamedProperty>(),
    /** Days since January 1, 1970, in the organization's time zone. */
    day: t.integer(),
    /** Empty if it is unknown. */
    name: t.key(t.HOST),
    clicks: t.count(),
  },
  { primary: ["organization_id", "link_id", "dimension", "day", "name"], clustered: ["clicks"] },
);
export type ClickCountRow = t.RowOf<typeof clickCounts>;

const UTM = 100;

/** What clicks have in common, by which filters find them. */
export const clickSources = t.table(
  "click_sources",
  {
    organization_id: t.id(),
    /** A hash of the columns from `bot` on. */
    source: t.key(16),
    /** The last one with such clicks. */
    day: t.integer(),
    /** 1 for known bots. */
    bot: t.smallint(),
    // Empty if they are unknown.
    referrer: t.key(t.HOST),
    country: t.key(2),
    device: t.key(16),
    browser: t.key(40),
    operating_system: t.key(40),
    destination: t.key(t.HOST),
    utm_source: t.key(UTM),
    utm_medium: t.key(UTM),
    utm_campaign: t.key(UTM),
  },
  { primary: ["organization_id", "source"], clustered: [] },
);
export type ClickSourceRow = t.RowOf<typeof clickSources>;

/** The columns of the hours of a day. */
export const HOURS = Array.from({ length: 24 }, (_, hour) => `hour_${hour}` as const);
type Hours = Record<(typeof HOURS)[number], t.Column<number | null, true>>;

export const clickDetails = t.table(
  "click_details",
  {
    organization_id: t.id(),
    /** Empty for the sum of all links. */
    link_id: t.id(),
    // Before the day, because a filter selects few sources.
    source: t.key(16),
    day: t.integer(),
    clicks: t.count(),
    ...(Object.fromEntries(HOURS.map((name) => [name, t.integer().nullable()])) as Hours),
  },
  { primary: ["organization_id", "link_id", "source", "day"], clustered: ["clicks"] },
);
export type ClickDetailRow = t.RowOf<typeof clickDetails>;

export const LINK_TABLES = [links, clickCounts, clickSources, clickDetails] as const;
