import type { ElicitResult } from "@modelcontextprotocol/client";
import test from "ava";
import { type Api, apiAt, isMissing } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { connectMcp, modernRequest, postMcp, refusalOf } from "../../harness/clients/mcp.ts";
import { advanceClock } from "../../harness/clock.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const service = await startTestService();
const organization = await service.createOrganization();
const token = await service.token(organization);
const api = apiAt(service.url, token);
let webhooks = 0;
test.after.always(() => service.close());

const FORMS = { elicitation: { form: {} } };
const ACCEPT = { confirm: { action: "accept", content: {} } };

/** What can be deleted: the tool, its question, and how to see that it still exists. */
const DELETIONS = {
  delete_link: {
    create: async () => (await api.createLink({ url: "https://example.com/target" })).id,
    question: /^Permanently delete the link http.*\/[\w-]+ to https:\/\/example\.com\/target\?/,
    read: (owner: Api, id: string) => owner.get(`/v1/links/${id}`),
  },
  delete_webhook: {
    create: async () => (await createWebhook(api, `https://hooks.example.com/${++webhooks}`)).id,
    question:
      /^Delete the webhook that sends events to https:\/\/hooks\.example\.com\/\d+, and its delivery log\?/,
    read: (owner: Api, id: string) => owner.get(`/v1/webhooks/${id}`),
  },
};
const TOOLS = Object.entries(DELETIONS);

type Round = {
  id: string;
  capabilities?: object;
  inputResponses?: object | undefined;
  requestState?: string | undefined;
  as?: string;
};

/** Calls a tool once, as a client that answers questions itself. */
async function call(name: string, { id, capabilities = FORMS, as = token, ...round }: Round) {
  const params = { name, arguments: { id }, ...round };
  const { message, headers } = modernRequest("tools/call", params, capabilities);
  const reply = await postMcp(service.urls.mcp, message, { ...headers, ...bearer(as) });
  const result = reply.rpc?.result as
    | { resultType: string; requestState?: string; structuredContent?: { deleted: boolean } }
    | undefined;
  return { ...reply, result, error: reply.rpc?.error };
}

for (const [name, { create, question, read }] of TOOLS) {
  test.serial(`${name} asks what to delete, and deletes it once the user accepts`, async (t) => {
    const id = await create();
    const questions: string[] = [];
    const client = await connectMcp(service.urls.mcp, token, "2026-07-28", (text) => {
      questions.push(text);
      return { action: "accept", content: {} };
    });
    const { structuredContent } = await client.callTool({ name, arguments: { id } });
    t.is(questions.length, 1);
    t.regex(questions[0] ?? "", question);
    t.deepEqual(structuredContent, { deleted: true, id });
    isMissing(t, await read(api, id));
    await client.close();
  });

  for (const action of ["decline", "cancel"] as const) {
    test.serial(`${name} deletes nothing if the user answers with ${action}, and says so`, async (t) => {
      const id = await create();
      const respond = (): ElicitResult => ({ action });
      const client = await connectMcp(service.urls.mcp, token, "2026-07-28", respond);
      const result = await client.callTool({ name, arguments: { id } });
      t.falsy(result.isError);
      t.like(result.structuredContent, { deleted: false, id });
      t.regex((result.structuredContent as { reason: string }).reason, /Nothing was deleted/);
      t.is((await read(api, id)).status, 200);
      await client.close();
    });
  }

  const WITHOUT_FORMS: [name: string, capabilities: object][] = [
    ["no capability", {}],
    ["sampling only", { sampling: {} }],
    ["questions by URL only", { elicitation: { url: {} } }],
  ];
  for (const [declared, capabilities] of WITHOUT_FORMS) {
    test.serial(`${name} runs without a question for a client that declares ${declared}`, async (t) => {
      const id = await create();
      const { result } = await call(name, { id, capabilities });
      t.deepEqual(result?.structuredContent as object, { deleted: true, id });
      isMissing(t, await read(api, id));
    });
  }

  test.serial(`${name} runs without a question for a client of 2025, which can't be asked`, async (t) => {
    const id = await create();
    const client = await connectMcp(service.urls.mcp, token, "2025-11-25", () => ({ action: "decline" }));
    const { structuredContent } = await client.callTool({ name, arguments: { id } });
    t.deepEqual(structuredContent, { deleted: true, id });
    await client.close();
  });

  test.serial(`${name} asks a client that declares elicitation without a mode`, async (t) => {
    const id = await create();
    const { result } = await call(name, { id, capabilities: { elicitation: {} } });
    t.is(result?.resultType, "input_required");
    t.is((await read(api, id)).status, 200);
  });

  test.serial(`${name} asks again if an answer comes without its question`, async (t) => {
    const [id, other] = [await create(), await create()];
    const state = async (of: string) => (await call(name, { id: of })).result?.requestState;
    const answers: [name: string, round: Omit<Round, "id">][] = [
      ["no state", { inputResponses: ACCEPT }],
      ["the state of another call", { inputResponses: ACCEPT, requestState: await state(other) }],
      ["a state without an answer", { requestState: await state(id) }],
      [
        "an answer to another question",
        { inputResponses: { other: ACCEPT.confirm }, requestState: await state(id) },
      ],
      [
        "an answer of another kind",
        { inputResponses: { confirm: { roots: [] } }, requestState: await state(id) },
      ],
      ["an answer that is no answer", { inputResponses: { confirm: true }, requestState: await state(id) }],
    ];
    for (const [what, round] of answers) {
      const { result } = await call(name, { id, ...round });
      t.is(result?.resultType, "input_required", what);
      t.is((await read(api, id)).status, 200, what);
    }
    t.is((await read(api, other)).status, 200);
  });

  test.serial(`${name} rejects a state that this service did not sign for this caller`, async (t) => {
    const id = await create();
    const state = (await call(name, { id })).result?.requestState ?? "";
    const [version, body = "", mac = ""] = state.split(".");
    const forged = JSON.parse(Buffer.from(body, "base64url").toString());
    const extended = { ...forged, exp: forged.exp + 3600 };
    const states: [name: string, state: string][] = [
      ["nothing", ""],
      ["a word", "accepted"],
      ["no signature", `${version}.${body}.`],
      ["another signature", `${version}.${body}.${mac.startsWith("A") ? "B" : "A"}${mac.slice(1)}`],
      ["a later expiry", `${version}.${Buffer.from(JSON.stringify(extended)).toString("base64url")}.${mac}`],
    ];
    for (const [what, requestState] of states) {
      const { error } = await call(name, { id, inputResponses: ACCEPT, requestState });
      t.is(error?.code, -32602, what);
      t.is((await read(api, id)).status, 200, what);
    }
  });

  test.serial(`${name} rejects the state of another organization, client or user`, async (t) => {
    const id = await create();
    const state = (await call(name, { id })).result?.requestState;
    const app = await service.createOrganization();
    const user = async () => {
      const colleague = await createColleague(service, organization.id, "owner");
      const parameters = { scope: "links:write webhooks:write" };
      const { access_token } = await tokensFor(service, app, colleague, {
        organizationId: organization.id,
        parameters,
      });
      return access_token;
    };
    const [ada, bob, stranger] = [await user(), await user(), await service.token(app)];
    const adasState = (await call(name, { id, as: ada })).result?.requestState;
    const attempts: [name: string, as: string, requestState: string | undefined][] = [
      ["the client's, sent by a user", ada, state],
      ["one user's, sent by another", bob, adasState],
      ["a user's, sent by the client", token, adasState],
      ["another organization's", stranger, state],
    ];
    for (const [what, as, requestState] of attempts) {
      const { error } = await call(name, { id, as, inputResponses: ACCEPT, requestState });
      t.is(error?.code, -32602, what);
      t.is((await read(api, id)).status, 200, what);
    }
  });

  test.serial(`${name} finds nothing when an accepted answer is sent again`, async (t) => {
    const id = await create();
    const round = {
      id,
      inputResponses: ACCEPT,
      requestState: (await call(name, { id })).result?.requestState,
    };
    t.true((await call(name, round)).result?.structuredContent?.deleted);
    const again = await call(name, round);
    t.is(refusalOf(again.result as never)?.code, "not_found");
  });

  test.serial(`${name} does not ask about what doesn't exist`, async (t) => {
    const { result } = await call(name, { id: "lnk_unknown" });
    t.is(refusalOf(result as never)?.code, "not_found");
  });
}

test.serial("a link that was changed after the question is asked about again", async (t) => {
  const { id } = await api.createLink({ url: "https://example.com/before" });
  const { result } = await call("delete_link", { id });
  await api.send("PATCH", `/v1/links/${id}`, { json: { url: "https://example.com/after" } });
  const round = { id, inputResponses: ACCEPT, requestState: result?.requestState };
  const again = await call("delete_link", round);
  t.is(again.result?.resultType, "input_required");
  t.true(again.text.includes("https://example.com/after"));
  t.is((await api.get(`/v1/links/${id}`)).status, 200);
});

test.serial("an answer is accepted for ten minutes", async (t) => {
  const { id } = await api.createLink();
  const round = {
    id,
    inputResponses: ACCEPT,
    requestState: (await call("delete_link", { id })).result?.requestState,
  };
  advanceClock(11 * 60_000);
  t.is((await call("delete_link", round)).error?.code, -32602);
  t.is((await api.get(`/v1/links/${id}`)).status, 200);
});

test.serial("tools that delete nothing never ask", async (t) => {
  const client = await connectMcp(service.urls.mcp, token, "2026-07-28", () => {
    throw new Error("asked");
  });
  const { tools } = await client.listTools();
  const { id } = await api.createLink();
  for (const { name } of tools.filter(({ annotations }) => !annotations?.destructiveHint)) {
    const result = await client.callTool({ name, arguments: { id } });
    t.truthy(result.content, name);
  }
  t.falsy((await client.callTool({ name: "update_link", arguments: { id, title: "x" } })).isError);
  await client.close();
});
