import type { ServerResponse } from "node:http";
import { startApp } from "../clients/app-server.ts";

type Json = Record<string, unknown>;

/** A tool that a model may call. Codex puts the tools of a server into a namespace. */
type Tool = { name: string; namespace?: string };

type Api = {
  path: RegExp;
  /** The member of a request that has the conversation. */
  conversation: string;
  isResult(part: Json): boolean;
  answer(text: string, tool: Tool | undefined): Json[];
};

const TOOL = /(^|[_-])whoami$/;
const MODEL = "stand-in";

const MESSAGES: Api = {
  path: /\/messages$/,
  conversation: "messages",
  isResult: ({ type }) => type === "tool_result",
  answer(text, tool) {
    const block = tool
      ? { type: "tool_use", id: "toolu_1", name: tool.name, input: {} }
      : { type: "text", text: "" };
    const delta = tool ? { type: "input_json_delta", partial_json: "{}" } : { type: "text_delta", text };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: "msg_1", type: "message", role: "assistant", model: MODEL, content: [], usage };
    return [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: tool ? "tool_use" : "end_turn" }, usage },
      { type: "message_stop" },
    ];
  },
};

const RESPONSES: Api = {
  path: /\/responses$/,
  conversation: "input",
  isResult: ({ type }) => type === "function_call_output",
  answer(text, tool) {
    const content = [{ type: "output_text", text, annotations: [] }];
    const item = tool
      ? {
          type: "function_call",
          id: "fc_1",
          call_id: "call_1",
          ...tool,
          arguments: "{}",
          status: "completed",
        }
      : { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const response = { id: "resp_1", object: "response", model: MODEL };
    return [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { ...response, status: "completed", output: [item], usage } },
    ];
  },
};

const COMPLETIONS: Api = {
  path: /\/chat\/completions$/,
  conversation: "messages",
  isResult: ({ role }) => role === "tool",
  answer(content, tool) {
    const call = {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: tool?.name, arguments: "{}" },
    };
    const delta = tool ? { role: "assistant", tool_calls: [call] } : { role: "assistant", content };
    const chunk = { id: "chat_1", object: "chat.completion.chunk", created: 0, model: MODEL };
    return [
      { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: tool ? "tool_calls" : "stop" }] },
    ];
  },
};

const GEMINI: Api = {
  path: /:streamGenerateContent$/,
  conversation: "contents",
  isResult: (part) => "functionResponse" in part,
  answer(text, tool) {
    const part = tool ? { functionCall: { name: tool.name, args: {} } } : { text };
    const content = { role: "model", parts: [part] };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    return [{ candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata }];
  },
};

const APIS = [MESSAGES, RESPONSES, COMPLETIONS, GEMINI];

/** Starts a stand-in for the APIs of Anthropic, OpenAI and Google, which calls the tool `whoami` as soon as it is offered. */
export async function startModel() {
  const { promise: called, resolve } = Promise.withResolvers<void>();
  const { url } = await startApp(async (request, answer) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const text = (await request.toArray()).join("");
    const api = APIS.find(({ path }) => path.test(pathname));
    if (!api) return void answer.writeHead(404, { "content-type": "application/json" }).end("{}");
    const body = JSON.parse(text) as Json;
    const [found] = partsOf(body[api.conversation]).filter(api.isResult);
    if (found) {
      model.result = JSON.stringify(found);
      resolve();
    }
    const tool = toolsIn(body.tools).find(({ name }) => TOOL.test(name));
    send(answer, api.answer("Done.", found ? undefined : tool), api === COMPLETIONS);
    if (!found && !tool) model.onAskedEarly();
  });
  const model = {
    url,
    /** What the tool has returned, as JSON; empty until then. */
    result: "",
    called,
    /** Is called when it was asked before it had the tool. */
    onAskedEarly() {},
  };
  return model;
}

function send(answer: ServerResponse, events: Json[], endsWithDone: boolean): void {
  answer.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events)
    answer.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  answer.end(endsWithDone ? "data: [DONE]\n\n" : "");
}

function toolsIn(value: unknown, namespace?: string): Tool[] {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => toolsIn(item, namespace));
  const { name, type, tools, function: wrapped, functionDeclarations } = value as Json;
  if (type === "namespace") return toolsIn(tools, String(name));
  const own = typeof name === "string" ? [{ name, ...(namespace && { namespace }) }] : [];
  return [...own, ...toolsIn(wrapped), ...toolsIn(functionDeclarations)];
}

function partsOf(messages: unknown): Json[] {
  const all = (Array.isArray(messages) ? messages : []).flatMap((message) => [
    message,
    ...[message.content, message.parts].filter(Array.isArray).flat(),
  ]);
  return all.filter((part) => typeof part === "object" && part !== null);
}
