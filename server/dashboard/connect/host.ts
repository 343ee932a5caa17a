/** One step of a guide: an instruction, in which backticks mark code, with text to copy or a link to open. */
export type Step = { text: string; code?: string; link?: { text: string; href: string } };

/**
 * How a host identifies itself to the authorization server: by a known metadata document, by registering, by registering
 * if the server offers that and by its document otherwise, or in any way.
 */
type Identity = "document" | "registration" | "registration or document" | "any";

/** An AI client that connects to the MCP server, and how its user sets it up. */
export type Host = {
  /** The value of `host` in the URL of its tab. */
  id: string;
  name: string;
  identity: Identity;
  /** It connects from its vendor's servers instead of the user's computer. */
  isHosted?: true;
  steps(mcpUrl: string): Step[];
  /** How to use the organization's own client, if the host accepts a client ID and secret. */
  ownClient?: { redirectUri: string; steps(mcpUrl: string, clientId: string): Step[] };
};

/** The name of the server in the configuration of a host. */
export const SERVER_NAME = "linkgate";
