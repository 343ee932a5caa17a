import { z } from "zod";
import type { Notice } from "../../adapters/accounts/notices.ts";
import { notFound } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { describeNotice } from "../mail/notices.ts";
import { onAccount } from "./operation.ts";
import { timestamp } from "./schemas.ts";

const PATH = "/dashboard/notices";

const noticeSchema = z.object({
  id: z.string(),
  kind: z.string().describe("What happened, such as `new_device`."),
  message: z.string().describe("The same as a sentence."),
  advice: z.string().describe("What to do if it wasn't the user."),
  address: z.string().nullable().describe("The IP address."),
  browser: z.string().nullable(),
  name: z.string().nullable().describe("What was added or removed, such as the name of a passkey."),
  created_by: z
    .string()
    .nullable()
    .optional()
    .describe("Who did it, if not the user: a username, `operator`, or `null` for a deleted user."),
  created_at: timestamp,
  dismissed_at: timestamp.nullable(),
});

function noticeToJson(notice: Notice) {
  const { title: message, advice } = describeNotice(notice);
  const { address = null, browser = null, name = null, by: createdBy } = notice.data;
  return toJson(noticeSchema, { ...notice, message, advice, address, browser, name, createdBy });
}

export const listNotices = onAccount({
  at: `GET ${PATH}`,
  summary: "List the security notices of the last 90 days",
  output: z.object({ data: z.array(noticeSchema) }),
  run: async ({ storage, user }) => ({ data: (await storage.notices.list(user.id)).map(noticeToJson) }),
});

export const dismissNotices = onAccount({
  at: `POST ${PATH}/dismiss`,
  summary: "Dismiss all security notices",
  done: { "notices-dismissed": "Notices dismissed." },
  async run({ storage, user }) {
    await storage.notices.dismiss(user.id);
  },
});

export const dismissNotice = onAccount({
  at: `POST ${PATH}/{notice_id}/dismiss`,
  summary: "Dismiss a security notice",
  done: { "notice-dismissed": "Notice dismissed." },
  async run({ storage, user, params }) {
    if (!(await storage.notices.dismiss(user.id, params.notice_id))) throw notFound("notice");
  },
});
