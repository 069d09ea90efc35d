package snowsim

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Identity is a user's WORKLOAD_IDENTITY: whose tokens let a machine in as the user.
type Identity struct {
	// Issuer and Subject are the token's. Of AWS, Issuer is "AWS" and Subject the access key's id.
	Issuer, Subject string
	// PublicKey is the PEM or base64 DER of the issuer's RSA key; AWS has none here.
	PublicKey string
}

// identityAudience is for whom identity tokens are made.
const identityAudience = "snowflakecomputing.com"

// oauthTokenPath is where the stand-in's authorization server gives tokens; it stands for one outside of an account.
const oauthTokenPath = "/snowsim/oauth/token" //nolint:gosec // a path

// TokenURL is the token endpoint of the stand-in's authorization server.
func (s *Server) TokenURL() string { return "http://" + s.Addr() + oauthTokenPath }

// accessToken is one that the authorization server gave.
type accessToken struct {
	user    *user
	expires time.Time
}

// giveToken answers a client that shows its id and secret (RFC 6749, 4.4).
func (s *Server) giveToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	id, secret, _ := r.BasicAuth()
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	w.Header().Set("Content-Type", "application/json")
	refuse := func(status int, code, description string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "error_description": description})
	}
	if r.PostFormValue("grant_type") != "client_credentials" {
		refuse(http.StatusBadRequest, "unsupported_grant_type", "only client_credentials is given")
		return
	}
	for _, who := range s.users {
		want, known := who.OAuthClients[id]
		if !known || idErr != nil || secretErr != nil || subtle.ConstantTimeCompare([]byte(want), []byte(secret)) != 1 {
			continue
		}
		token := newToken()
		s.mu.Lock()
		s.accessTokens[token] = accessToken{who, time.Now().Add(s.opts.OAuthValidity)}
		s.mu.Unlock()
		s.counts.oauthTokens.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer",
			"expires_in": s.opts.OAuthValidity.Seconds()})
		return
	}
	refuse(http.StatusUnauthorized, "invalid_client", "the client or its secret is wrong")
}

// givenToken finds a token of the authorization server.
func (s *Server) givenToken(token string) (a accessToken, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, found = s.accessTokens[token]
	return a, found
}

// byIdentity authenticates a machine by what its provider says of it.
func (s *Server) byIdentity(provider, credential string) (*user, error) {
	var (
		issuer, subject string
		check           func(*user) error
		err             error
	)
	switch provider {
	case "AWS":
		issuer = provider
		subject, err = awsCaller(credential)
		check = func(*user) error { return nil }
	case "OIDC", "GCP", "AZURE":
		issuer, subject, check, err = identityClaims(credential, provider != "AZURE")
	default:
		return nil, fmt.Errorf("no provider %q", provider)
	}
	if err != nil {
		return nil, err
	}
	for _, who := range s.users {
		if i := who.WorkloadIdentity; i.Subject != "" && i.Issuer == issuer && i.Subject == subject {
			return who, check(who)
		}
	}
	return nil, fmt.Errorf("no user has the identity %s of %s", subject, issuer)
}

// identityClaims reads a token; check verifies that a user's issuer signed it.
func identityClaims(token string, forSnowflake bool) (issuer, subject string, check func(*user) error, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", nil, errors.New("not a JWT")
	}
	var claims struct {
		Issuer   string          `json:"iss"`
		Subject  string          `json:"sub"`
		Audience json.RawMessage `json:"aud"`
		Expires  float64         `json:"exp"`
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	switch {
	case err != nil:
		return "", "", nil, fmt.Errorf("reading the claims: %w", err)
	case forSnowflake && !strings.Contains(string(claims.Audience), `"`+identityAudience+`"`):
		return "", "", nil, fmt.Errorf("the audience is %s", claims.Audience)
	case float64(time.Now().UnixMilli()) > 1000*claims.Expires:
		return "", "", nil, errors.New("expired")
	}
	return claims.Issuer, claims.Subject, func(who *user) error {
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil || who.identityKey == nil {
			return errors.New("no signature, or no key")
		}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		return rsa.VerifyPKCS1v15(who.identityKey, crypto.SHA256, sum[:], signature)
	}, nil
}

// awsCaller reads whose signature a request to AWS's STS has; AWS alone could verify it.
func awsCaller(credential string) (string, error) {
	var signed struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	text, err := base64.StdEncoding.DecodeString(credential)
	if err == nil {
		err = json.Unmarshal(text, &signed)
	}
	u, parseErr := url.Parse(signed.URL)
	if err != nil || parseErr != nil || !strings.HasPrefix(u.Host, "sts.") ||
		signed.Headers["X-Snowflake-Audience"] != identityAudience {
		return "", errors.New("not a signed request to AWS's STS for Snowflake")
	}
	_, key, _ := strings.Cut(signed.Headers["Authorization"], "Credential=")
	key, _, found := strings.Cut(key, "/")
	if !found {
		return "", errors.New("no signature")
	}
	return key, nil
}

// refusedByPolicy answers users whom a network policy does not let in from the client's address.
func refusedByPolicy(who *user, r *http.Request) *protocol.Envelope {
	if who == nil || !who.NetworkPolicy {
		return nil
	}
	host, _, _ := strings.Cut(r.RemoteAddr, ":")
	e := protocol.Refusal("390422", "Incoming request with IP/Token "+host+
		" is not allowed to access Snowflake. Contact your account administrator. For more information about this error, "+
		"go to https://community.snowflake.com/s/ip-xxxxxxxxxxxx-is-not-allowed-to-access.")
	return &e
}
