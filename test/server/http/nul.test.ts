import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

/** Paths of each kind of id, and the status of an unknown one. */
const PATHS: [path: string, status: number][] = [
  ["/v1/links/{}", 404],
  ["/v1/links/{}/analytics", 404],
  ["/v1/webhooks/{}", 404],
  ["/v1/webhooks/{}/deliveries", 404],
  ["/{}", 404],
];
const PARAMETERS = [
  "/v1/links?cursor={}",
  "/v1/links?search={}",
  "/v1/links?tag={}",
  "/v1/events?after={}",
  "/v1/analytics?from={}",
];

for (const nul of ["lnk_%00", "%00", "lnk_%00%EF%BF%BD", "a%00b"])
  test(`an id or parameter with a NUL (${nul}) is unknown or invalid`, async (t) => {
    const api = apiAt(service.url, await service.token(await service.createOrganization()));
    for (const [path, status] of PATHS)
      t.is((await api.get(path.replace("{}", nul))).status, status, `GET ${path}`);
    for (const path of PARAMETERS) t.true((await api.get(path.replace("{}", nul))).status < 500, path);
    const patched = await api.send("PATCH", `/v1/links/${nul}`, { json: { title: "x" } });
    t.is(patched.status, 404);
    t.is((await api.send("DELETE", `/v1/links/${nul}`)).status, 404);
    t.is((await api.send("POST", `/v1/webhooks/${nul}/test`, { json: {} })).status, 404);
  });

test("dashboard pages of an id with a NUL don't exist", async (t) => {
  for (const path of ["/dashboard/organizations/org_%00/links", "/auth/invitations/%00", "/auth/reset/%00"]) {
    const { status } = await fetch(`${service.url}${path}`, { redirect: "manual" });
    t.true(status < 500, `${path} ${status}`);
  }
});
