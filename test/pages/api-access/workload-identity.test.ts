import test from "ava";
import type { NewTrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { isMissing, isProblem } from "../../harness/clients/api.ts";
import { follow, isMarked, openSection, typedIn } from "../../harness/clients/pages.ts";
import { GITHUB_RULE } from "../../harness/clients/workload.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

type Rule = Record<string, unknown> & { id: string };

const RULE: NewTrustRule = { ...GITHUB_RULE, audience: "https://links.example" };

const withRules = () => openSection<Rule>(service, "workload-identity");

test("an organization has at most 20 trust rules", async (t) => {
  const { organization, owner, path, open } = await withRules();
  for (let count = 0; count < 20; count++)
    await service.storage.trustRules.create(organization.id, RULE, OPERATOR);
  const refused = await owner.api.send("POST", path, { json: RULE });
  isProblem(t, refused, { status: 409, code: "trust_rule_limit" });
  const page = await open();
  t.regex(page.text, /20 of 20 trust rules\. Delete one to add another\./);
  t.is(page.html.querySelector(`a[href="${path}/new"]`), null);
});

test("in a browser, the form of an unknown platform asks for what the claims are", async (t) => {
  const { open } = await withRules();
  for (const platform of ["other", "constructor", "%00"]) {
    const { status, html } = await open(`/new?platform=${platform}`);
    t.is(status, 200);
    t.is(html.querySelector("#audience")?.attributes.value, service.url);
    t.is(html.querySelector("main [aria-current=page]")?.text, "Other issuer");
  }
});

const FIELDS = {
  name: "Deploy & more",
  issuer: RULE.issuer,
  subject: RULE.subject,
  claims: "repository_owner_id=65\r\n\r\n ref_type = branch \r\nsha=a=b",
  scopes: ["links:write", "webhooks:read"],
};

test("in a browser, a rule is added and deleted without JavaScript", async (t) => {
  const { browser, open, list, path, owner } = await withRules();
  t.regex((await open()).text, /No trust rules yet/);
  const form = await follow(browser, await open("/new"), "Other issuer");
  const added = await browser.press(form, "Add trust rule", FIELDS);
  t.is(added.url, `${service.url}${path}?done=trust-rule-added`);
  t.regex(added.text, /Deploy &amp; more/);
  const [rule] = await list();
  t.like(rule, {
    audience: service.url,
    created_by: owner.username,
    last_used_at: null,
    claims: { repository_owner_id: "65", ref_type: "branch", sha: "a=b" },
    scopes: ["links:write", "webhooks:read"],
  });
  await browser.press(added, "Delete trust rule Deploy & more");
  t.deepEqual(await list(), []);
  isMissing(t, await owner.api.send("DELETE", `${path}/${rule?.id}`));
});

test("in a browser, a rule is composed from the fields of a platform, at first of GitHub; a wrong one is named", async (t) => {
  const { browser, open, list } = await withRules();
  const fields = { name: "Deploy", owner: "octo-org", repository: "octo-repo", ref: "refs/heads/main" };
  const page = await browser.press(await open("/new"), "Add trust rule", fields);
  t.is(page.status, 422);
  isMarked(t, page, "ref", /without refs\/heads\//);
  t.is(typedIn(page, "name"), "Deploy");
  const added = await browser.press(page, "Add trust rule", { ref: "main", owner_id: "65" });
  const subject = "repo:octo-org/octo-repo:ref:refs/heads/main";
  t.like((await list())[0], { subject, audience: service.url, claims: { repository_owner_id: "65" } });
  t.true(added.html.querySelector("main")?.text.includes(subject), "the page shows it");
});
