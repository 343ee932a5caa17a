import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => service.close());

// Characters of every encoded size, in UTF-8 and in JSON.
const characters: [name: string, character: string][] = [
  ["letters", "x"],
  ["three-byte characters", "€"],
  ["characters escaped in JSON", "\u0001"],
  ["quotes", '"'],
];
for (const [name, character] of characters) {
  test(`a link of the maximum size, of ${name}, can be created, read, updated and deleted`, async (t) => {
    const filled = (length: number, n: number) => `${n}`.padEnd(length, "€");
    const keys = Array.from({ length: 50 }, (_, n) => filled(40, n));
    const fields = {
      url: `https://example.com/${"€".repeat(800)}`,
      title: "€".repeat(255),
      external_id: `${name} `.padEnd(255, "€"),
      tags: Array.from({ length: 20 }, (_, n) => filled(50, n)),
      metadata: Object.fromEntries(keys.map((key) => [key, character.repeat(500)])),
    };
    const link = await api.createLink(fields);
    t.like(link, fields);
    const path = `/v1/links/${link.id}`;
    t.deepEqual((await api.get(path)).body, link);
    const { body } = await api.send<object>("PATCH", path, { json: { title: "short" } });
    t.like(body, { ...fields, title: "short" });
    t.is((await api.send("DELETE", path)).status, 204);
  });
}
