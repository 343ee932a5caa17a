import type { RedirectType } from "../../resources/links/types.ts";
import type { Flag, Json, Time } from "./tables.ts";

export type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  /** The URL, slug and title with folded case, which searches look at. */
  searched: string;
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
  /** The client that acted for the user in `created_by`. Null if none did. */
  created_via: string | null;
  created_at: Time;
  updated_at: Time;
  deleted_at: Time | null;
  disabled_at: Time | null;
  disabled_reason: string | null;
};

/** On SQLite: the only row, whose version rises with each change that affects redirects. */
export type LinkChangesRow = { id: number; version: number };

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

/** The clicks of an organization on one day: of people, of known bots, or of people from a referrer or country. */
export type ClickTotalRow = {
  organization_id: string;
  dimension: "clicks" | "bots" | "referrer" | "country";
  day: number;
  name: string;
  clicks: number;
};
