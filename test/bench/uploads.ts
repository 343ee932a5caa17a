import { encode } from "./long-texts.ts";

const MB = 2 ** 20;

const list = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, n) => part(n));
const LINK = '"url":"https://example.com/"';

/** Files that are made to be expensive. */
const FILES: Record<string, () => string> = {
  "5 MB of one letter": () => "a".repeat(5 * MB),
  "100,000 columns": () =>
    `url,${list(100_000, (n) => `c${n}`)}\nhttps://example.com/,${",".repeat(99_999)}\n`,
  "60,000 metadata keys": () => `[{${LINK},"metadata":{${list(60_000, (n) => `"k${n}":"1"`)}}}]`,
  "50,000 levels of nesting": () => `[{${LINK},"metadata":${"[".repeat(50_000)}${"]".repeat(50_000)}}]`,
};

/** Returns a request that checks each of the files for an organization, without importing links. */
export async function uploads(organization: string, session: string) {
  const requests = Object.entries(FILES).map(async ([name, content]) => {
    const form = new FormData();
    form.set("dry_run", "true");
    form.set("file", new File([content()], "links"));
    const path = `/dashboard/organizations/${organization}/links/import`;
    const headers = { authorization: `Bearer ${session}` };
    const request = await encode({ path, init: { method: "POST", body: form, headers } });
    return [`file of ${name}`, () => request] as const;
  });
  return Object.fromEntries(await Promise.all(requests));
}
