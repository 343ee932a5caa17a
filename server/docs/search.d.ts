import type MiniSearch from "minisearch";
import type { Options } from "minisearch";

export type Entry = {
  id: number;
  title: string;
  page: string;
  href: string;
  excerpt: string;
  text: string;
  /** How much it counts, compared with others that match as well. */
  weight: number;
};
export type Result = Pick<Entry, "title" | "page" | "href" | "excerpt">;
export declare const OPTIONS: Options<Entry>;
export declare function find(index: MiniSearch<Entry>, query: string): Result[];
