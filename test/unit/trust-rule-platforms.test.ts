import test from "ava";
import type { Problem } from "../../resources/http/problem.ts";
import { validate } from "../../resources/http/validate.ts";
import { readSettings } from "../../server/settings/config.ts";
import { publicUrlsOf } from "../../server/settings/public-urls.ts";
import { PLATFORMS } from "../../server/workload-identity/platforms.ts";
import {
  composeTrustRule,
  ruleContextOf,
  trustRuleSchema,
} from "../../server/workload-identity/trust-rules.ts";

type Filled = Record<string, string>;

const settings = readSettings({ BASE_URL: "https://links.example" });
const schema = trustRuleSchema(ruleContextOf(settings, publicUrlsOf(settings, 443)));

/** Returns the rule that a form means, in which each field starts with what it shows first. */
function ruleOf(platform: string, fields: Filled) {
  const known = PLATFORMS[platform];
  if (!known) throw new Error(`no platform ${platform}`);
  const shown = Object.entries(known.fields).map(([name, field]) => {
    const [first = ""] = "options" in field ? Object.keys(field.options) : [];
    return [name, field.initial ?? first];
  });
  const scopes = ["links:write"];
  return validate(schema, composeTrustRule(known, { ...Object.fromEntries(shown), ...fields, scopes }));
}

const GITHUB = { name: "Deploy", owner: "octo-org", repository: "octo-repo", ref: "main" };
const GITLAB = { name: "Deploy", project: "my-group/sub/my-project", ref: "main" };
const ANY_JOB = { jobs: "any", ref: "", protected: "false", project_id: "20" };
const IDS = { owner_id: "65", repository_id: "74" };
const WITH_IDS = { subject_format: "ids", ...IDS };

const MAIN = "repo:octo-org/octo-repo:ref:refs/heads/main";
const POD = { name: "Pod", issuer: "https://cluster.example", namespace: "jobs", service_account: "links" };
const PROJECT = "project_path:my-group/sub/my-project";
const COMPOSED: [platform: string, fields: Filled, subject: string, claims?: object][] = [
  ["github", GITHUB, MAIN],
  ["github", { ...GITHUB, owner: "", repository: "octo-org/octo-repo" }, MAIN],
  ["github", { ...GITHUB, repository: " https://github.com/Octo-Org/octo-repo.git " }, MAIN],
  ["github", { ...GITHUB, jobs: "tag", ref: "v1.2" }, "repo:octo-org/octo-repo:ref:refs/tags/v1.2"],
  ["github", { ...GITHUB, jobs: "environment", ref: "L: EU" }, "repo:octo-org/octo-repo:environment:L%3A EU"],
  ["github", { ...GITHUB, jobs: "pull_request", ref: "" }, "repo:octo-org/octo-repo:pull_request"],
  ["github", { ...GITHUB, jobs: "any", ref: "" }, "repo:octo-org/octo-repo:*"],
  ["github", { ...GITHUB, ...WITH_IDS }, "repo:octo-org@65/octo-repo@74:ref:refs/heads/main"],
  ["github", { ...GITHUB, ...IDS }, MAIN, { repository_owner_id: "65", repository_id: "74" }],
  ["gitlab", GITLAB, `${PROJECT}:ref_type:branch:ref:main`, { ref_protected: "true" }],
  ["gitlab", { ...GITLAB, ...ANY_JOB }, `${PROJECT}:*`, { project_id: "20" }],
  ["kubernetes", POD, "system:serviceaccount:jobs:links"],
];

const ISSUERS: Record<string, string> = {
  github: "https://token.actions.githubusercontent.com",
  gitlab: "https://gitlab.com",
  kubernetes: "https://cluster.example",
};

for (const [platform, fields, subject, claims = {}] of COMPOSED)
  test(`a rule for ${platform} is composed with the subject ${subject} from ${JSON.stringify(fields)}`, (t) => {
    const audience = "https://links.example";
    t.like(ruleOf(platform, fields), { issuer: ISSUERS[platform], audience, subject, claims });
  });

const REFUSED: [platform: string, fields: Filled, field: string, error: RegExp][] = [
  ["github", { ...GITHUB, owner: "" }, "owner", /^must be the name of a user or organization on GitHub$/],
  ["github", { ...GITHUB, repository: "other-org/octo-repo" }, "repository", /without its owner/],
  ["github", { ...GITHUB, jobs: "some" }, "jobs", /^must be one of branch, /],
  ["github", { ...GITHUB, ref: "" }, "ref", /^must be the name of a branch$/],
  ["github", { ...GITHUB, ref: "refs/heads/main" }, "ref", /without refs\/heads\//],
  ["github", { ...GITHUB, ref: "a b" }, "ref", /^must be a name as in git/],
  ["github", { ...GITHUB, jobs: "environment", ref: "a*b" }, "ref", /\* at the end only/],
  ["github", { ...GITHUB, jobs: "any" }, "ref", /^must be empty for pull requests and any job$/],
  ["github", { ...GITHUB, ...WITH_IDS, owner_id: "" }, "owner_id", /^is required if tokens have IDs$/],
  ["github", { ...GITHUB, repository_id: "x" }, "repository_id", /^must be a number$/],
  ["gitlab", { ...GITLAB, project: "my-project" }, "project", /^must be a group and a project/],
  ["gitlab", { ...GITLAB, issuer: "http://gitlab.example" }, "issuer", /^must be an https URL/],
  ["gitlab", { ...GITLAB, jobs: "tag", ref: "" }, "ref", /^must be the name of a tag$/],
  ["kubernetes", { ...POD, namespace: "Jobs" }, "namespace", /^must be a name as in Kubernetes/],
];

test("a form whose fields make no rule is refused by the field", (t) => {
  for (const [platform, fields, field, error] of REFUSED) {
    const problem = t.throws<Problem>(() => ruleOf(platform, fields));
    t.is(problem?.errors?.map((one) => one.field).join(), field);
    t.regex(problem?.errors?.[0]?.message ?? "", error);
  }
});
