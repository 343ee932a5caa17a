import test from "ava";
import { isMissing } from "../../harness/api.ts";
import { createTeam } from "../../harness/dashboard.ts";
import { linksInBrowser } from "../../harness/pages.ts";
import { readQr } from "../../harness/qr.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const elsewhere = await startTestService({ SHORT_URL: "https://go.example" });
test.after.always(() => Promise.all([service.close(), elsewhere.close()]));

test("the QR code of a link reads as its short address", async (t) => {
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

test("the QR code leads to where short links live", async (t) => {
  const { base, owner } = await createTeam(elsewhere, "free");
  const made = await owner.api.send<{ id: string }>("POST", `${base}/links`, {
    json: { url: "https://example.com/", slug: "spring" },
  });
  const { text } = await owner.api.send("GET", `${base}/links/${made.body.id}/qr.svg`);
  t.is(readQr(text), "https://go.example/spring");
});

test("the QR code is shown on the page of the link, and kept as a file from there", async (t) => {
  const { person, create, open } = await linksInBrowser(service);
  const link = await create({ slug: "kept" });
  const page = await open(`/${link.id}`);
  const image = page.html.querySelector("img");
  t.regex(image?.attributes.alt ?? "", /^QR code that leads to localhost:\d+\/kept$/);
  t.is(readQr((await person.open(service.url + image?.attributes.src)).text), link.short_url);
  const kept = await person.open(service.url + page.html.querySelector("a[download]")?.attributes.href);
  t.is(kept.headers.get("content-disposition"), 'attachment; filename="kept.svg"');
  t.is(readQr(kept.text), link.short_url);
});

test("a link that is archived or renamed keeps a QR code that is right", async (t) => {
  const { member, path, create } = await linksInBrowser(service);
  const { id, short_url } = await create();
  const read = async () => readQr((await member.api.send("GET", `${path}/${id}/qr.svg`)).text);
  await member.api.send("PATCH", `${path}/${id}`, { json: { archived: true } });
  t.is(await read(), short_url);
  await member.api.send("PATCH", `${path}/${id}`, { json: { slug: "renamed" } });
  t.is(await read(), `${service.url}/renamed`);
});

test("sec 91: the QR code of what was deleted, and of another organization's link, is not there", async (t) => {
  const { member, stranger, other, path, create } = await linksInBrowser(service);
  const [gone, theirs] = [await create(), await create()];
  await member.api.send("DELETE", `${path}/${gone.id}`);
  isMissing(t, await member.api.send("GET", `${path}/${gone.id}/qr.svg`));
  isMissing(
    t,
    await stranger.api.send("GET", `/dashboard/organizations/${other.id}/links/${theirs.id}/qr.svg`),
  );
});
