import type { ProblemBody } from "../../../resources/http/problem.ts";
import type { ImportReport, RowResult } from "../../../resources/links/import/index.ts";
import type { Api } from "./api.ts";

export type ImportBody = Omit<ImportReport, "stopped"> & {
  dry_run: boolean;
  stopped?: { code: string; message: string };
  results: RowResult[];
} & Partial<ProblemBody>;

export function importLinks(api: Api, base: string, content: string | Uint8Array) {
  const form = new FormData();
  form.set("dry_run", "false");
  form.set("file", new File([content as BlobPart], "links"));
  return api.send<ImportBody>("POST", `${base}/links/import`, { body: form });
}
