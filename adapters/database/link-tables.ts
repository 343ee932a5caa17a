import type { RedirectType } from "../../resources/links/types.ts";
import type { Flag, Json, Time } from "./tables.ts";

export type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  tags: string;
  external_id: string | null;
  metadata: Json;
  archived: Flag;
  expires_at: Time | null;
  max_clicks: number | null;
  redirect_type: RedirectType;
  clicks: number;
  last_clicked_at: Time | null;
  version: number;
  created_by: string;
  /** The client that acted for the user in `created_by`. Null if none did, and in links of earlier versions. */
  created_via: string | null;
  created_at: Time;
  updated_at: Time;
  deleted_at: Time | null;
  disabled_at: Time | null;
  disabled_reason: string | null;
};

/** A run of links of an organization, in the order of their ids, whose texts are indexed. */
export type LinkSearchSegmentRow = {
  id: string;
  organization_id: string;
  /** The segment contains the links after this id, up to and including the last one. */
  after_id: string;
  last_id: string;
  /** The ids of its links, separated by commas, so a position in `link_search_grams` names a link. */
  link_ids: string;
  created_at: Time;
};

/** One of the buckets of a segment's grams, encoded as `postings.ts` describes. */
export type LinkSearchGramsRow = {
  segment_id: string;
  bucket: number;
  organization_id: string;
  grams: Uint8Array;
};

/** A link whose texts may be newer than the segment that contains it. */
export type LinkSearchChangeRow = { organization_id: string; link_id: string; version: number };

/** On SQLite: the only row, whose version rises with each change that affects redirects. */
export type LinkChangesRow = { id: number; version: number };

/** On SQLite: the clicks on a link in one batch, until they are counted in the link. */
export type ClickLogRow = { batch: number; link_id: string; clicks: number; clicked_at: Time };

export type ClickStatRow = {
  link_id: string;
  /** Days since January 1, 1970, UTC. */
  day: number;
  referrer: string;
  country: string;
  bot: Flag;
  organization_id: string;
  clicks: number;
};
