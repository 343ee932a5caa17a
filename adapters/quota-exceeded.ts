/** What an organization or a user may have a limited number of. */
export type Quota = "links" | "link_bytes" | "members" | "organizations";

/** A change was rolled back because it would exceed a quota. */
export class QuotaExceeded extends Error {
  override readonly name = "QuotaExceeded";
  readonly code = "ERR_QUOTA_EXCEEDED";
  readonly quota: Quota;
  readonly limit: number;

  constructor(quota: Quota, limit: number) {
    super(`the quota of ${limit} ${quota} is used up`);
    this.quota = quota;
    this.limit = limit;
  }
}
