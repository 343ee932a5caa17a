/** The number of calls in the current minute, including this one, and the seconds until the next minute begins. */
export type Count = { calls: number; seconds: number };

/** Counts calls of the API and MCP. Must never reject: if shared storage is unavailable, it counts per process. */
export type CallCounter = {
  ofAddress(address: string): Promise<Count>;
  /** @param calls the number of calls in this request */
  ofOrganization(id: string, calls: number): Promise<Count>;
  /** Counts a request that is refused because of a limit. */
  refused(limit: "address" | "organization"): void;
};
