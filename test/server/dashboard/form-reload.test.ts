import test from "ava";
import { isMissing } from "../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const team = await createTeam(service);
const { browser } = await browserOf(service, team.owner);
test.after.always(() => service.close());

const ACCOUNT = "/dashboard/account";
const { base, member } = team;

// The URLs that a browser shows after a rejected form, and the pages with these forms.
const FORMS: [url: string, page: string][] = [
  [`${ACCOUNT}/password`, ACCOUNT],
  [`${ACCOUNT}/delete`, ACCOUNT],
  [`${ACCOUNT}/identities/delete`, ACCOUNT],
  [`${base}/members/${member.id}`, `${base}/members`],
  [`${base}/members/${member.id}/reset-link`, `${base}/members`],
  [`${base}/client/redirect-uris`, `${base}/client`],
  [`${base}/client/secrets/sec_1/delete`, `${base}/client`],
  [`${base}/workload-identity/trs_1/delete`, `${base}/workload-identity`],
];

for (const [url, page] of FORMS) {
  const name = url.replace(base, "…").replace(member.id, "usr_1");

  test(`opening ${name} leads a browser to the page with the form`, async (t) => {
    const opened = await browser.open(service.url + url);
    t.is(opened.url, service.url + page);
    t.is(opened.status, 200);
  });

  test(`GET ${name} returns 404 to an API client`, async (t) => {
    isMissing(t, await team.owner.api.send("GET", url));
  });
}
