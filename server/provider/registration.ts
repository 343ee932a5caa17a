import type { Context, Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import { errors } from "oidc-provider";
import { allowOrigins } from "../../resources/http/cors.ts";
import { isClientId } from "../clients/client-metadata.ts";
import type { RegisteredClientIds, Registration } from "../clients/registered-client-id.ts";
import { parseRegistrationRequest, REGISTERED_CLIENT } from "../clients/registration-request.ts";

// Compressing 16 KB can take a hundred times as long, and longer metadata rarely fits into an id.
const MAX_METADATA_LENGTH = 2048;

const parseJson = bodyParser({ enableTypes: ["json"], jsonLimit: "16kb", onerror: throwBodyError });

/**
 * Creates the client registration endpoint (RFC 7591 §3). oidc-provider's own stores each registration, and anyone may
 * send any number of them.
 */
export function registration(ids: RegisteredClientIds, origins: ReadonlySet<string>): Middleware[] {
  return [allowOrigins(origins), (ctx) => register(ctx, ids)];
}

async function register(ctx: Context, ids: RegisteredClientIds): Promise<void> {
  ctx.set("Cache-Control", "no-store");
  try {
    const client = parseRegistrationRequest(await readBody(ctx));
    const clientId = issueId(ids, client);
    ctx.status = 201;
    ctx.body = {
      client_id: clientId,
      client_id_issued_at: Math.floor(Date.now() / 1000),
      ...(client.name && { client_name: client.name }),
      redirect_uris: client.redirectUris,
      ...REGISTERED_CLIENT,
    };
  } catch (error) {
    if (!(error instanceof errors.OIDCProviderError)) throw error;
    ctx.status = error.statusCode;
    ctx.body = { error: error.error, error_description: error.error_description };
  }
}

/** @throws InvalidClientMetadata if the id would be too long */
function issueId(ids: RegisteredClientIds, client: Pick<Registration, "name" | "redirectUris">): string {
  const { length } = [client.name, ...client.redirectUris].join();
  const clientId = length <= MAX_METADATA_LENGTH ? ids.issue(client) : "";
  if (isClientId(clientId)) return clientId;
  throw new errors.InvalidClientMetadata(
    "redirect_uris and client_name must be shorter; the client ID contains them and has at most 255 characters",
  );
}

async function readBody(ctx: Context): Promise<unknown> {
  if (!ctx.is("application/json")) {
    throw new errors.InvalidRequest("the content type must be application/json", 415);
  }
  await parseJson(ctx, async () => {});
  // The parser returns an empty object if there is no body to read.
  return ctx.request.rawBody ? ctx.request.body : undefined;
}

function throwBodyError(error: Error & { status?: number }): never {
  if (error.status === 413) throw new errors.InvalidRequest("the request must be at most 16 KB", 413);
  throw new errors.InvalidClientMetadata("the request must be a JSON object");
}
