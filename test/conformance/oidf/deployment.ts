import { OPERATOR, startTestService, type TestService } from "../../harness/service.ts";

export const REDIRECT_URI = "https://suite.example.com/callback";

export type Client = { id: string; secret: string; organizationId: string };

/** A service with what the suite is configured with. */
export type Deployment = Awaited<ReturnType<typeof deploy>>;

/** Starts a service with the client under test, one of another organization, and an owner of the first one's. */
export async function deploy(settings: Record<string, string> = {}) {
  const service = await startTestService(settings);
  const clients: [Client, Client] = [await createClient(service), await createClient(service)];
  const user = await service.createUser([clients[0].organizationId], "suite-user", "owner");
  return { issuer: service.url, clients, user, service };
}

async function createClient(service: TestService): Promise<Client> {
  const { id: organizationId, clientId: id, clientSecret: secret } = await service.createOrganization();
  await service.storage.clients.setRedirectUris(organizationId, [REDIRECT_URI], OPERATOR);
  return { id, secret, organizationId };
}
