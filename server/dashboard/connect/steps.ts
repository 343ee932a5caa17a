import { quoted } from "../../docs/examples.ts";
import { pretty } from "../../docs/prose.ts";

/** One step of a guide: an instruction, in which backticks mark code, with text to copy or a link to open. */
export type Step = { text: string; code?: string; link?: { text: string; href: string } };

/**
 * Returns the steps that lines describe: the instruction, and after it, on a line of its own, code or `[text](href)`.
 * Names in braces stand for the addresses and configurations of the server.
 */
export function toSteps(lines: string[], mcpUrl: string, clientId = ""): Step[] {
  const values = valuesOf(mcpUrl, clientId);
  const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] as string);
  return lines.map((line) => {
    const [text = "", rest] = line.split("\n");
    const [, label, href] = /^\[(.+)\]\((.+)\)$/.exec(rest ?? "") ?? [];
    if (label && href) return { text, link: { text: label, href: fill(href) } };
    return { text, ...(rest && { code: fill(rest) }) };
  });
}

function valuesOf(url: string, client_id: string): Record<string, string> {
  const vscode = JSON.stringify({ name: "linkgate", type: "http", url });
  const mcpServers = (server: object) => pretty({ mcpServers: { linkgate: server } });
  return {
    url,
    client_id,
    // https://cursor.com/docs/mcp/install-links
    cursor_link: `cursor://anysphere.cursor-deeplink/mcp/install?${new URLSearchParams({
      name: "linkgate",
      config: Buffer.from(JSON.stringify({ url })).toString("base64"),
    })}`,
    cursor_json: mcpServers({ url }),
    cursor_client_json: mcpServers({
      url,
      auth: {
        CLIENT_ID: client_id,
        CLIENT_SECRET: `\${env:LINKGATE_CLIENT_SECRET}`,
        scopes: ["links:read", "links:write"],
      },
    }),
    vscode_json: quoted(vscode),
    // https://code.visualstudio.com/api/extension-guides/ai/mcp
    vscode_link: `vscode:mcp/install?${encodeURIComponent(vscode)}`,
    gemini_client_json: mcpServers({
      httpUrl: url,
      oauth: { enabled: true, clientId: client_id, clientSecret: "$LINKGATE_CLIENT_SECRET" },
    }),
    zed_json: pretty({ context_servers: { linkgate: { url } } }),
    goose_link: `goose://extension?url=${encodeURIComponent(url)}&type=streamable_http&id=linkgate&name=linkgate&description=Short%20links%20and%20their%20clicks`,
    other_json: mcpServers({ type: "http", url }),
  };
}
