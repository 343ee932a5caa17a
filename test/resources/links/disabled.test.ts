import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { linkSwitches } = service.storage;
const api = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => service.close());

test("a disabled link says why, and can't be changed", async (t) => {
  const link = await api.createLink({ external_id: "order-1" });
  await linkSwitches.disable(link.id, "Phishing", OPERATOR);
  const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
  t.is(body.disabled_reason, "Phishing");
  t.truthy(body.disabled_at);
  t.not(headers.get("etag"), '"1"');
  const refused = { status: 409, code: "link_disabled" };
  for (const json of [{ url: "https://example.org/" }, { slug: "another" }, { archived: true }, {}]) {
    isProblem(t, await api.send("PATCH", `/v1/links/${link.id}`, { json }), refused);
  }
  const json = { url: "https://example.org/" };
  isProblem(t, await api.send("PUT", "/v1/links/by-external-id/order-1", { json }), refused);
  t.is((await api.get<LinkBody>(`/v1/links/${link.id}`)).body.url, link.url);
});

test("visitors of a disabled link see no reason", async (t) => {
  const link = await api.createLink();
  await linkSwitches.disable(link.id, "Phishing", OPERATOR);
  isProblem(t, await apiAt(service.url).send("GET", `/${link.slug}`), { status: 410, code: "link_gone" });
  const page = await fetch(`${service.url}/${link.slug}`, { headers: { accept: "text/html" } });
  const text = await page.text();
  t.is(page.status, 410);
  t.true(text.includes("The link has been disabled."));
  t.false(text.includes("Phishing"));
});

test("a disabled link can be deleted, but its slug can't be used again", async (t) => {
  const link = await api.createLink({ slug: "phish" });
  await linkSwitches.disable(link.id, null, OPERATOR);
  t.is((await api.send("DELETE", `/v1/links/${link.id}`)).status, 204);
  t.is(await linkSwitches.enable(link.id, OPERATOR), undefined);
  const json = { url: "https://example.com/", slug: "phish" };
  isProblem(t, await api.send("POST", "/v1/links", { json }), {
    status: 409,
    code: "slug_taken",
    fields: ["slug"],
  });
});

test("of a concurrent change and a switch, a change that comes second is refused", async (t) => {
  for (let round = 0; round < 5; round++) {
    const link = await api.createLink();
    const changes = Array.from({ length: 6 }, (_, index) =>
      api.send("PATCH", `/v1/links/${link.id}`, { json: { title: `Title ${index}` } }),
    );
    const disabled = await linkSwitches.disable(link.id, "Phishing", OPERATOR);
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    t.true(statuses.every((status) => status === 200 || status === 409));
    const { body, headers } = await api.get<LinkBody>(`/v1/links/${link.id}`);
    t.is(body.disabled_reason, "Phishing");
    t.is(body.title, disabled?.title ?? null);
    t.is(headers.get("etag"), `"${disabled?.version}"`);
  }
});
