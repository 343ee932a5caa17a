import test from "ava";
import { readQr } from "../../../harness/browser/qr.ts";
import { isMissing } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { linksInBrowser } from "../../../harness/clients/pages.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
const elsewhere = await startTestService({ SHORT_URL: "https://go.example" });
test.after.always(() => Promise.all([service.close(), elsewhere.close()]));

test("the QR code of a link contains its short URL", async (t) => {
  const { member, path, create } = await linksInBrowser(service);
  for (const slug of ["q", "a-slug-of-some-length", undefined]) {
    const link = await create(slug ? { slug } : {});
    const { status, headers, text } = await member.api.send("GET", `${path}/${link.id}/qr.svg`);
    t.is(status, 200);
    t.is(headers.get("content-type"), "image/svg+xml");
    t.is(headers.get("content-disposition"), null);
    t.is(readQr(text), link.short_url);
  }
});

test("the QR code uses the host of SHORT_URL", async (t) => {
  const { base, owner } = await createTeam(elsewhere, "free");
  const created = await owner.api.send<{ id: string }>("POST", `${base}/links`, {
    json: { url: "https://example.com/", slug: "spring" },
  });
  const { text } = await owner.api.send("GET", `${base}/links/${created.body.id}/qr.svg`);
  t.is(readQr(text), "https://go.example/spring");
});

test("the page of a link shows its QR code and offers it for download", async (t) => {
  const { browser, create, open } = await linksInBrowser(service);
  const link = await create({ slug: "spring" });
  const page = await open(`/${link.id}`);
  const image = page.html.querySelector("img");
  t.regex(image?.attributes.alt ?? "", /^QR code for localhost:\d+\/spring$/);
  t.is(readQr((await browser.open(service.url + image?.attributes.src)).text), link.short_url);
  const download = await browser.open(service.url + page.html.querySelector("a[download]")?.attributes.href);
  t.is(download.headers.get("content-disposition"), 'attachment; filename="spring.svg"');
  t.is(readQr(download.text), link.short_url);
});

test("the QR code of a link stays correct when it is archived or its slug changes", async (t) => {
  const { member, path, create } = await linksInBrowser(service);
  const { id, short_url } = await create();
  const read = async () => readQr((await member.api.send("GET", `${path}/${id}/qr.svg`)).text);
  await member.api.send("PATCH", `${path}/${id}`, { json: { archived: true } });
  t.is(await read(), short_url);
  await member.api.send("PATCH", `${path}/${id}`, { json: { slug: "renamed" } });
  t.is(await read(), `${service.url}/renamed`);
});

test("the QR code of a deleted link, or of another organization's link, is not found", async (t) => {
  const { member, stranger, other, path, create } = await linksInBrowser(service);
  const [deleted, theirs] = [await create(), await create()];
  await member.api.send("DELETE", `${path}/${deleted.id}`);
  isMissing(t, await member.api.send("GET", `${path}/${deleted.id}/qr.svg`));
  isMissing(
    t,
    await stranger.api.send("GET", `/dashboard/organizations/${other.id}/links/${theirs.id}/qr.svg`),
  );
});
