# Client credentials, code with PKCE and refresh with the oauth2 gem.

require "base64"
require "digest"
require "json"
require "oauth2"
require "securerandom"

client = OAuth2::Client.new(
  ENV.fetch("CLIENT_ID"),
  ENV.fetch("CLIENT_SECRET"),
  site: ENV.fetch("ISSUER"),
  authorize_url: "/oauth/authorize",
  token_url: "/oauth/token"
)

def used(token)
  { accessToken: token.token, organization: token.get("/v1/organization").parsed.fetch("id") }
end

machine = client.client_credentials.get_token(scope: "links:read")

redirect_uri = ENV.fetch("REDIRECT_URI")
state = SecureRandom.urlsafe_base64(32)
verifier = SecureRandom.urlsafe_base64(48)
challenge = Base64.urlsafe_encode64(Digest::SHA256.digest(verifier), padding: false)
puts client.auth_code.authorize_url(
  redirect_uri: redirect_uri,
  scope: ENV.fetch("SCOPE"),
  state: state,
  code_challenge: challenge,
  code_challenge_method: "S256"
)
$stdout.flush
callback = URI.decode_www_form(URI($stdin.gets.chomp).query).to_h
abort "the state differs" unless callback["state"] == state

token = client.auth_code.get_token(callback.fetch("code"), redirect_uri: redirect_uri, code_verifier: verifier)

begin
  client.auth_code.get_token("unknown", redirect_uri: redirect_uri, code_verifier: verifier)
rescue OAuth2::Error => e
  error = e.code
end

puts JSON.generate(
  clientCredentials: used(machine),
  code: used(token),
  refresh: used(token.refresh!),
  error: error
)
