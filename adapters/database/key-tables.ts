import type { Time } from "./tables.ts";

export type SealedKeyRow = {
  purpose: string;
  sealed: string;
  created_at: Time;
  /** Incremented by each rotation. */
  version: number;
};
