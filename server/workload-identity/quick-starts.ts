import type { PublicUrls } from "../../resources/access/resource-metadata.ts";

/** The file that holds the token of a Kubernetes pod. */
export const TOKEN_FILE = "/var/run/secrets/linkgate/token";

type Target = Pick<PublicUrls, "base" | "api">;

export function workloadQuickStarts(urls: Target, clientId: string) {
  return [
    {
      name: "github-actions",
      title: "GitHub Actions",
      note: "Save this as .github/workflows/link.yml.",
      code: githubActions(urls, clientId),
    },
    {
      name: "gitlab-ci",
      title: "GitLab CI/CD",
      note: "Add this job to .gitlab-ci.yml.",
      code: gitlabCi(urls, clientId),
    },
    {
      name: "kubernetes",
      title: "Kubernetes",
      note: "Apply this with kubectl. This server must be able to reach the cluster’s issuer.",
      code: kubernetes(urls, clientId),
    },
  ];
}

function githubActions(urls: Target, clientId: string): string {
  const script = `ID_TOKEN=$(curl -sSf "$ACTIONS_ID_TOKEN_REQUEST_URL&audience=${urls.base}" \\
  -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" |
  sed -n 's/.*"value":"\\([^"]*\\)".*/\\1/p')
${assertionScript(urls, clientId, `-d assertion="\${ID_TOKEN:?}"`)}
echo "::add-mask::$TOKEN"
${linkScript(urls)}`;
  return `on:
  push:
    branches: [main]
permissions:
  id-token: write
jobs:
  create-link:
    runs-on: ubuntu-latest
    steps:
      - run: |
${indented(script, 10)}`;
}

function gitlabCi(urls: Target, clientId: string): string {
  const script = `${assertionScript(urls, clientId, `-d assertion="\${LINKGATE_ID_TOKEN:?}"`)}
${linkScript(urls)}`;
  return `create-link:
  image: curlimages/curl
  id_tokens:
    LINKGATE_ID_TOKEN:
      aud: ${urls.base}
  script:
    - |
${indented(script, 6)}`;
}

function kubernetes(urls: Target, clientId: string): string {
  const script = `${assertionScript(urls, clientId, `--data-urlencode assertion@${TOKEN_FILE}`)}
${linkScript(urls)}`;
  return `apiVersion: batch/v1
kind: Job
metadata:
  name: create-link
spec:
  template:
    spec:
      serviceAccountName: my-service-account
      restartPolicy: Never
      containers:
        - name: create-link
          image: curlimages/curl
          command: [sh, -c]
          args:
            - |
${indented(script, 14)}
          volumeMounts:
            - name: linkgate
              mountPath: /var/run/secrets/linkgate
      volumes:
        - name: linkgate
          projected:
            sources:
              - serviceAccountToken:
                  path: token
                  audience: ${urls.base}
                  expirationSeconds: 600`;
}

function assertionScript(urls: Target, clientId: string, assertion: string): string {
  return tokenScript(urls, clientId, "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion);
}

/** Returns a shell script that sets `TOKEN`, or prints the error of the token endpoint. */
export function tokenScript({ base }: Target, clientId: string, grantType: string, proof: string): string {
  return `RESPONSE=$(curl -sS --fail-with-body ${base}/oauth/token \\
  -d grant_type=${grantType} \\
  -d client_id=${clientId} \\
  ${proof}) || echo "$RESPONSE" >&2
TOKEN=$(echo "$RESPONSE" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')`;
}

/** Returns a shell command that creates a link with `TOKEN`. */
export function linkScript({ api }: Target): string {
  return `curl -sS --fail-with-body ${api}/links \\
  -H "Authorization: Bearer \${TOKEN:?}" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://example.com/"}'`;
}

function indented(text: string, spaces: number): string {
  return text.replace(/^/gm, " ".repeat(spaces));
}
