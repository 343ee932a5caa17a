import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { parse } from "yaml";
import { workloadQuickStarts } from "../../../server/dashboard/api-access/workload-identity.ts";
import { addRule } from "../../harness/clients/workload.ts";
import { runShell, temporaryFolder } from "../../harness/program.ts";
import {
  githubClaims,
  gitlabClaims,
  kubernetesClaims,
  sendJson,
  startTokenIssuer,
} from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
const organization = await service.createOrganization();
const folder = temporaryFolder("workload");
const { urls } = service;
const quickStarts = workloadQuickStarts(urls, organization.clientId);

for (const subject of [
  "repo:octo-org@65/octo-repo@74:ref:refs/heads/main",
  "project_path:my-group/my-project:ref_type:branch:ref:main",
  "system:serviceaccount:my-namespace:my-service-account",
])
  await addRule(service, organization, { issuer: issuer.issuer, subject, claims: {} });
// GitHub's endpoint: the audience is a parameter of the URL, and the token is in a field of the JSON response.
const REQUEST_TOKEN = "the-request-token-of-the-job";
issuer.respond("/id-token", async (request, response) => {
  const query = new URL(request.url ?? "", issuer.issuer).searchParams;
  if (request.headers.authorization !== `Bearer ${REQUEST_TOKEN}`) return void response.writeHead(401).end();
  const audience = query.get("audience") ?? "https://github.com/octo-org";
  const value = await issuer.sign(githubClaims(issuer.issuer, audience));
  sendJson(response, { count: value.length, value });
});

function configurationOf(name: string) {
  const { code = "" } = quickStarts.find((one) => one.name === name) ?? {};
  return parse(code);
}

const JOBS: Record<string, () => Promise<{ script: string; settings: Record<string, string> }>> = {
  async github() {
    const { permissions, jobs } = configurationOf("github");
    if (permissions["id-token"] !== "write") throw new Error("GitHub would set no variables");
    return {
      // GitHub's default shell for `run`.
      script: `set -e\n${jobs["create-link"].steps[0].run}`,
      settings: {
        ACTIONS_ID_TOKEN_REQUEST_URL: `${issuer.issuer}/id-token?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
      },
    };
  },
  async gitlab() {
    const { id_tokens, script } = configurationOf("gitlab")["create-link"];
    const entries = Object.entries(id_tokens as Record<string, { aud: string }>).map(
      async ([name, { aud }]) => [name, await issuer.sign(gitlabClaims(issuer.issuer, aud))] as const,
    );
    return { script: script.join("\n"), settings: Object.fromEntries(await Promise.all(entries)) };
  },
  async kubernetes() {
    const { containers, volumes } = configurationOf("kubernetes").spec.template.spec;
    const [{ args, command, volumeMounts }] = containers;
    const { serviceAccountToken } = volumes[0].projected.sources[0];
    const mounted = path.posix.join(volumeMounts[0].mountPath, serviceAccountToken.path);
    const file = path.join(folder, "token");
    writeFileSync(file, await issuer.sign(kubernetesClaims(issuer.issuer, serviceAccountToken.audience)));
    if (serviceAccountToken.expirationSeconds !== 600) throw new Error("renewed less often than possible");
    if (command.join(" ") !== "sh -c" || !args[0].includes(mounted)) throw new Error("another script");
    return { script: args[0].replaceAll(mounted, file), settings: {} };
  },
};

for (const [name, jobOf] of Object.entries(JOBS)) {
  test(`the configuration for ${name} creates a link when its platform runs it, or prints why it got no token`, async (t) => {
    const { script, settings } = await jobOf();
    const { stdout, stderr, code } = await runShell(script, { settings });
    t.is(code, 0, stderr);
    t.regex(stdout, /"id":"lnk_/);
    if (name === "github") t.regex(stdout, /^::add-mask::lga_[\w-]+$/m, "its log hides the access token");

    const job = await jobOf();
    const unknown = job.script.replaceAll(organization.clientId, "lgc_unknown");
    const stopped = await runShell(unknown, { settings: job.settings });
    t.not(stopped.code, 0);
    const reason = /"error":"invalid_grant","error_description":"assertion is invalid: no trust rule/;
    for (const text of [reason, /TOKEN/]) t.regex(stopped.stderr, text);
    t.notRegex(stopped.stdout, /lnk_/);
  });
}

test("without the permission for ID tokens, the script for GitHub says which variable is missing", async (t) => {
  const { script } = await (JOBS.github as (typeof JOBS)[string])();
  const { stderr, code } = await runShell(script);
  t.not(code, 0);
  t.regex(stderr, /ID_TOKEN/);
});
