import type { Fields, Format } from "./formats.ts";

/** A row, by plain names of its columns. `number` is that of a spreadsheet for CSV, and counts from 1 for JSON. */
export type FileRow = {
  number: number;
  fields: Fields;
  /** As the file has them, in the order of `LinkFile.columns`. */
  cells: readonly unknown[];
  /** How much of the file ends with this row, from 0 to 1. */
  share: number;
  /** Why the row can't be read. */
  refusal?: string | undefined;
};
/** An object in JSON is one column, and those of its fields that are read, such as `meta.maxVisits`, are others. */
export type LinkFile = { format: Format; columns: string[]; rows: AsyncIterable<FileRow> };

export type OpenBytes = () => AsyncIterable<Uint8Array>;
export type OpenTexts = () => AsyncIterable<string>;
/** Called with the number of rows so far. May throw a Problem. */
export type CheckRows = (count: number) => void;
