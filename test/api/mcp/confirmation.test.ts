import test, { type ExecutionContext } from "ava";
import { isMissing } from "../../harness/clients/api.ts";
import { shareApi, tokensFor } from "../../harness/clients/authorization.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { connectUntilEnd, modernRequest, postMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { advanceClock } from "../../harness/clock.ts";
import { bearer } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const { service, app: organization, token, api } = await shareApi();
const hook = await createWebhook(api, "https://hooks.example.com/in");
const link = await api.createLink({ url: "https://example.com/target" });

/** What can be deleted: by which tool, below which path, and the question. */
const DELETIONS: [name: string, path: string, id: string, question: RegExp][] = [
  ["delete_link", "/v1/links", link.id, /^Permanently delete the link \S+ to \S+\/target\?/],
  ["delete_webhook", "/v1/webhooks", hook.id, /^Delete the webhook .* to \S+\/in, and its delivery log\?/],
];

const FORMS = { elicitation: { form: {} } };
const ACCEPT = { confirm: { action: "accept", content: {} } };

type Round = {
  id: string;
  capabilities?: object;
  inputResponses?: object;
  requestState?: string | undefined;
  as?: string;
};

/** Calls delete_link once, as a client that answers questions itself. */
async function call({ id, capabilities = FORMS, as = token, ...round }: Round) {
  const params = { name: "delete_link", arguments: { id }, ...round };
  const { message, headers } = modernRequest("tools/call", params, capabilities);
  const reply = await postMcp(service.urls.mcp, message, { ...headers, ...bearer(as) });
  const result = reply.rpc?.result as
    | { resultType: string; requestState?: string; structuredContent?: { deleted: boolean } }
    | undefined;
  return { ...reply, result, error: reply.rpc?.error };
}

for (const [name, path, id, question] of DELETIONS)
  test.serial(`${name} asks what to delete, and deletes it once the user accepts`, async (t) => {
    const questions: string[] = [];
    const client = await connectUntilEnd(t, service.urls.mcp, token, "2026-07-28", (text) => {
      questions.push(text);
      return { action: "accept", content: {} };
    });
    const { structuredContent } = await client.callTool({ name, arguments: { id } });
    t.is(questions.length, 1);
    t.regex(questions[0] ?? "", question);
    t.deepEqual(structuredContent, { deleted: true, id });
    isMissing(t, await api.get(`${path}/${id}`));
  });

const name = "delete_link";
const create = async () => (await api.createLink()).id;
const statusOf = async (id: string) => (await api.get(`/v1/links/${id}`)).status;

async function isRefused(t: ExecutionContext, round: Round, what?: string): Promise<void> {
  t.is((await call({ inputResponses: ACCEPT, ...round })).error?.code, -32602, what);
  t.is(await statusOf(round.id), 200, what);
}

test.serial("nothing is deleted if the user declines or cancels, and the result says so", async (t) => {
  for (const action of ["decline", "cancel"] as const) {
    const id = await create();
    const client = await connectUntilEnd(t, service.urls.mcp, token, "2026-07-28", () => ({ action }));
    const result = await client.callTool({ name, arguments: { id } });
    t.falsy(result.isError);
    t.like(result.structuredContent, { deleted: false, id });
    t.regex((result.structuredContent as { reason: string }).reason, /Nothing was deleted/);
    t.is(await statusOf(id), 200);
  }
});

test.serial("clients that can't show a form are not asked, and those that declare no mode are", async (t) => {
  for (const capabilities of [{}, { sampling: {} }, { elicitation: { url: {} } }]) {
    const id = await create();
    const { result } = await call({ id, capabilities });
    t.deepEqual(result?.structuredContent as object, { deleted: true, id });
  }
  const id = await create();
  t.is((await call({ id, capabilities: { elicitation: {} } })).result?.resultType, "input_required");
  const decline = () => ({ action: "decline" }) as const;
  const client = await connectUntilEnd(t, service.urls.mcp, token, "2025-11-25", decline);
  const { structuredContent } = await client.callTool({ name, arguments: { id } });
  t.deepEqual(structuredContent, { deleted: true, id }, "revisions of 2025 need a stream for that");
});

test.serial("an answer without its question is asked again", async (t) => {
  const [id, other] = [await create(), await create()];
  const state = async (of: string) => (await call({ id: of })).result?.requestState;
  const noAnswers = [undefined, { other: ACCEPT.confirm }, { confirm: { roots: [] } }, { confirm: true }];
  for (const [requestState, inputResponses] of [
    [undefined, ACCEPT],
    [await state(other), ACCEPT],
    ...(await Promise.all(noAnswers.map(async (answer) => [await state(id), answer] as const))),
  ] as const) {
    const { result } = await call({ id, requestState, ...(inputResponses && { inputResponses }) });
    t.is(result?.resultType, "input_required", JSON.stringify([requestState, inputResponses]));
    t.is(await statusOf(id), 200);
  }
  t.is(await statusOf(other), 200);
});

test.serial(
  "the state of another organization, client or user is rejected, and one that was changed",
  async (t) => {
    const id = await create();
    const state = (await call({ id })).result?.requestState;
    const app = await service.createOrganization();
    const user = async () => {
      const colleague = await createColleague(service, organization.id, "owner");
      const parameters = { scope: "links:write webhooks:write" };
      const chosen = { organizationId: organization.id, parameters };
      return (await tokensFor(service, app, colleague, chosen)).access_token;
    };
    const [ada, bob, stranger] = [await user(), await user(), await service.token(app)];
    const adasState = (await call({ id, as: ada })).result?.requestState;
    await isRefused(t, { id, as: ada, requestState: state }, "the client's, sent by a user");
    await isRefused(t, { id, as: bob, requestState: adasState }, "one user's, sent by another");
    await isRefused(t, { id, as: token, requestState: adasState }, "a user's, sent by the client");
    await isRefused(t, { id, as: stranger, requestState: state }, "another organization's");
    for (const requestState of [state?.slice(0, -4), state?.replace(/[^.]*$/, ""), "accepted"])
      await isRefused(t, { id, requestState }, requestState);
  },
);

test.serial("an accepted answer deletes once, and what doesn't exist is not asked about", async (t) => {
  const id = await create();
  const round = { id, inputResponses: ACCEPT, requestState: (await call({ id })).result?.requestState };
  t.true((await call(round)).result?.structuredContent?.deleted);
  for (const again of [await call(round), await call({ id: "lnk_unknown" })])
    t.is(refusalOf(again.result as never)?.code, "not_found");
});

test.serial("a link that was changed after the question is asked about again", async (t) => {
  const { id } = await api.createLink({ url: "https://example.com/before" });
  const { result } = await call({ id });
  await api.send("PATCH", `/v1/links/${id}`, { json: { url: "https://example.com/after" } });
  const again = await call({ id, inputResponses: ACCEPT, requestState: result?.requestState });
  t.is(again.result?.resultType, "input_required");
  t.true(again.text.includes("https://example.com/after"));
  t.is(await statusOf(id), 200);
});

test.serial("an answer is accepted for ten minutes", async (t) => {
  const id = await create();
  const requestState = (await call({ id })).result?.requestState;
  advanceClock(11 * 60_000);
  await isRefused(t, { id, requestState });
});

test.serial("tools that delete nothing never ask", async (t) => {
  const client = await connectUntilEnd(t, service.urls.mcp, token, "2026-07-28", () => {
    throw new Error("asked");
  });
  const { tools } = await client.listTools();
  const { id } = await api.createLink();
  for (const { name } of tools.filter(({ annotations }) => !annotations?.destructiveHint)) {
    const result = await client.callTool({ name, arguments: { id } });
    t.truthy(result.content, name);
  }
  t.falsy((await client.callTool({ name: "update_link", arguments: { id, title: "x" } })).isError);
});
