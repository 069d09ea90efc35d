package snowflake

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
)

// issuer signs identity tokens.
type issuer struct {
	key    *rsa.PrivateKey
	public string
}

func newIssuer(t testing.TB) issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return issuer{key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

const workload = "system:serviceaccount:bench:loadstone"

// token is an identity token that lasts for a time.
func (i issuer) token(t testing.TB, lasting time.Duration, audience any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	ends := float64(time.Now().Add(lasting).UnixMilli()) / 1000
	text := part(map[string]any{"alg": "RS256", "typ": "JWT"}) + "." +
		part(map[string]any{"iss": "https://issuer", "sub": workload, "aud": audience, "exp": ends})
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// keyText is a private key for a connection, and its public part.
func keyText(t testing.TB) (private, public string) {
	i := newIssuer(t)
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der), i.public
}

// signedIn is a DSN of the stand-in with another sign-in.
func signedIn(s *snowsim.Server, user string, parameters url.Values) string {
	parameters.Set("account", snowsim.DefaultAccount)
	parameters.Set("protocol", "http")
	if !parameters.Has("role") {
		parameters.Set("role", snowsim.DefaultRole)
	}
	parameters.Set("warehouse", snowsim.DefaultWarehouse)
	if user != "" {
		user += "@"
	}
	return "snowflake://" + user + s.Addr() + "/LOADSTONE/PUBLIC?" + parameters.Encode()
}

// TestRunsOutliveTheirTokens: with each sign-in but one that is given a single access token, sessions are opened and
// renewed for longer than session tokens, master tokens and access tokens are good for. An hour of an account is
// 0.8 s of the stand-in here: the run lasts for more than four.
func TestRunsOutliveTheirTokens(t *testing.T) {
	private, public := keyText(t)
	kubernetes := newIssuer(t)
	file := filepath.Join(t.TempDir(), "token")
	rotate := func() {
		t.Helper()
		next := file + ".next"
		if err := os.WriteFile(
			next,
			[]byte(kubernetes.token(t, time.Minute, []string{"snowflakecomputing.com"})),
			0o600,
		); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	rotate()
	t.Setenv(identityVariable, "aws, stand-in, file:"+file)
	const hour = 800 * time.Millisecond
	s := standIn(t, func(o *snowsim.Options) {
		o.SessionValidity, o.MasterValidity, o.OAuthValidity = hour, 4*hour, 3*hour
		o.Users = []snowsim.User{{Name: "ANN", Password: "secret", PublicKey: public, Tokens: map[string]bool{"pat": true},
			TokenRoles: map[string]string{"pat": snowsim.DefaultRole}, OAuthClients: map[string]string{"client": "its secret"},
			OAuthTokens:      map[string]bool{"once": true},
			WorkloadIdentity: snowsim.Identity{Issuer: "https://issuer", Subject: workload, PublicKey: kubernetes.public}}}
	})
	client := url.Values{"authenticator": {"oauth_client_credentials"}, "oauth_client_id": {"client"},
		"oauth_client_secret": {"its secret"}, "oauth_token_request_url": {s.TokenURL()}}
	dsns := map[string]string{
		"password":           signedIn(s, "ANN:secret", url.Values{}),
		"key pair":           signedIn(s, "ANN", url.Values{"private_key": {private}}),
		"token":              signedIn(s, "ANN", url.Values{"token": {"pat"}}),
		"client credentials": signedIn(s, "", client),
		"identity": signedIn(
			s,
			"",
			url.Values{"authenticator": {"workload_identity"}, "workload_identity_provider": {"oidc"}},
		),
	}
	type connected struct {
		db   *database
		conn target.Conn
	}
	open := map[string]connected{}
	if err := openDSN(t, dsns["password"], target.Config{}).Exec(t.Context(), "CREATE TABLE t (id NUMBER, a VARCHAR, "+
		"b NUMBER)"); err != nil {
		t.Fatal(err)
	}
	for name, dsn := range dsns {
		db := openDSN(t, dsn, target.Config{})
		defer func() { _ = db.Close() }()
		open[name] = connected{db, connect(t, db)}
	}
	// A full machine needs longer until a token has ended between two log-ins.
	for begun := time.Now(); time.Since(begun) < 9*hour/2 || s.Stats().OAuthTokens < 2 &&
		time.Since(begun) < time.Minute; time.Sleep(hour / 5) {
		rotate()
		for name, c := range open {
			_, err := exec(c.conn, 0, int64(1))
			if err != nil && c.db.Classify(err).Class != engine.ErrClassConnection {
				t.Errorf("%s: %v", name, err)
			}
			if c.conn.Broken() { // as the load engine does
				_ = c.conn.Close()
				c.conn = connect(t, c.db)
				open[name] = c
			}
			if _, err := c.db.Query(t.Context(), "SELECT CURRENT_USER()"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, c := range open {
		_ = c.conn.Close()
	}
	if n := s.Stats().OAuthTokens; n < 2 || n > 30 {
		t.Errorf("%d access tokens were asked for", n)
	}
	if n := s.Stats().Renewals; n == 0 {
		t.Error("no session was renewed")
	}
}

// TestTokensAreFetchedBeforeTheyEnd: a token is used while it is good for a while yet, asked for once by many log-ins,
// and not kept when the account does not take it, or when none is given.
func TestTokensAreFetchedBeforeTheyEnd(t *testing.T) {
	now, fetched := time.Unix(0, 0), 0
	var refuses error
	source := newTokenSource(func(context.Context) (string, time.Time, error) {
		fetched++
		return strconv.Itoa(fetched), now.Add(10 * time.Minute), refuses
	})
	source.now = func() time.Time { return now }
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "1"}, {9 * time.Minute, "1"}, {29 * time.Second, "1"}, {2 * time.Second, "2"}, {time.Hour, "3"}} {
		now = now.Add(c.after)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := source.get(t.Context()); got != c.want || err != nil {
					t.Errorf("after %v: %s, %v; not %s", c.after, got, err, c.want)
				}
			})
		}
		wg.Wait()
	}
	source.forget("2") // another log-in has got a new one
	if got, _ := source.get(t.Context()); got != "3" {
		t.Errorf("%s after an older one was refused", got)
	}
	source.forget("3")
	if got, _ := source.get(t.Context()); got != "4" {
		t.Errorf("%s after it was refused", got)
	}
	now, refuses = now.Add(time.Hour), errors.New("away")
	if got, err := source.get(t.Context()); got != "" || !errors.Is(err, refuses) {
		t.Errorf("%s, %v", got, err)
	}
	refuses = nil
	if got, err := source.get(t.Context()); got != "6" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// TestSignInsAreExplained: what an account, a provider of identities or an authorization server refuses is named, with
// what to do, and without any secret.
func TestSignInsAreExplained(t *testing.T) {
	kubernetes, other := newIssuer(t), newIssuer(t)
	s := standIn(t, func(o *snowsim.Options) {
		o.Roles = []string{"ANALYST"}
		o.Users = []snowsim.User{{Name: "ANN", Password: "secret", Tokens: map[string]bool{"pat": true, "ended": false},
			TokenRoles: map[string]string{"pat": "ANALYST"}, OAuthClients: map[string]string{"client": "its-secret"},
			WorkloadIdentity: snowsim.Identity{Issuer: "https://issuer", Subject: workload, PublicKey: kubernetes.public}},
			{Name: "FAR", Password: "secret", NetworkPolicy: true}}
	})
	file := filepath.Join(t.TempDir(), "token")
	client := func(id, secret, address string) url.Values {
		return url.Values{"authenticator": {"oauth_client_credentials"}, "oauth_client_id": {id},
			"oauth_client_secret": {secret}, "oauth_token_request_url": {address}}
	}
	oidc := url.Values{"authenticator": {"workload_identity"}, "workload_identity_provider": {"oidc"}}
	good := []string{"snowflakecomputing.com"}
	for _, c := range []struct {
		name, user string
		parameters url.Values
		identity   string // of the environment
		token      string // in the file
		want, hint string
	}{
		{"a network policy", "FAR:secret", url.Values{}, "", "", "network policy", "IP/Token 127.0.0.1 is not allowed to access"},
		{"a token of another role", "ANN", url.Values{"token": {"pat"}}, "", "", "SYSADMIN", "ROLE_RESTRICTION"},
		{"a token that ended", "ANN", url.Values{"token": {"ended"}}, "", "", "access token", "revoked"},
		{"a client that nobody knows", "", client("client", "wrong-secret", s.TokenURL()), "", "", "the client or its secret is wrong", ""},
		{"a server that is not there", "", client("client", "its-secret", "http://127.0.0.1:1/token"), "", "",
			"refused", "oauth_token_request_url"},
		{"a page in its place", "", client("client", "its-secret", "http://"+s.Addr()+"/nothing"), "", "", "404", ""},
		{"an identity that nobody allowed", "", oidc, "aws,gcp", "", "lets no connection", identityVariable},
		{"no file", "", oidc, "file:" + file + ".none", "", "cannot be read", identityVariable},
		{"no token", "", oidc, "file:" + file, "nothing", "not a JWT", "audience"},
		{"a token for others", "", oidc, "file:" + file, kubernetes.token(t, time.Hour, "sts.amazonaws.com"),
			"not made for Snowflake", "snowflakecomputing.com"},
		{"a token that has ended", "", oidc, "file:" + file, kubernetes.token(t, -time.Hour, good), "ended at", "renews"},
		{"another's signature", "", oidc, "file:" + file, other.token(t, time.Hour, good), "does not accept the OIDC identity",
			"WORKLOAD_IDENTITY"},
		{"GitHub without the permission", "", oidc, "github", "", "no identity token", "id-token: write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(identityVariable, c.identity+",stand-in")
			t.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", "")
			if err := os.WriteFile(file, []byte(c.token), 0o600); err != nil {
				t.Fatal(err)
			}
			db := openDSN(t, signedIn(s, c.user, c.parameters), target.Config{})
			defer func() { _ = db.Close() }()
			_, err := db.Check(t.Context())
			var e *engine.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, c.want) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("%v\nhint: %s", err, engine.AsError(err).Hint)
			}
			if text := engine.AsError(err).Message + engine.AsError(err).Hint; strings.Contains(text, "its-secret") ||
				strings.Contains(text, "wrong-secret") || len(c.token) > 99 && strings.Contains(text, c.token[:60]) {
				t.Errorf("a secret is told: %s", text)
			}
		})
	}
}

// TestGitHubGivesAToken for Snowflake, to a job that may have one; the environment gives one too.
func TestGitHubGivesAToken(t *testing.T) {
	i := newIssuer(t)
	s := standIn(t, func(o *snowsim.Options) {
		o.Users = []snowsim.User{{Name: "ANN", WorkloadIdentity: snowsim.Identity{Issuer: "https://issuer", Subject: workload,
			PublicKey: i.public}}}
	})
	asked := 0
	gitHub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.Header.Get("Authorization") != "Bearer job" ||
			r.URL.Query().Get("audience") != "snowflakecomputing.com" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"value": i.token(t, time.Hour, "snowflakecomputing.com")})
	}))
	defer gitHub.Close()
	t.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", gitHub.URL+"?api-version=2")
	t.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "job")
	t.Setenv("MY_TOKEN", i.token(t, time.Hour, "snowflakecomputing.com"))
	for _, from := range []string{"github", "env:MY_TOKEN"} {
		t.Setenv(identityVariable, from+",stand-in")
		db := openDSN(t, signedIn(s, "", url.Values{"authenticator": {"workload_identity"},
			"workload_identity_provider": {"OIDC"}}), target.Config{})
		for range 3 {
			if info, err := db.Check(t.Context()); err != nil || info.User != "ANN" {
				t.Errorf("%s: %+v, %v", from, info, err)
			}
		}
		_ = db.Close()
	}
	if asked != 1 {
		t.Errorf("GitHub was asked %d times for a token that is good for an hour", asked)
	}
}

// TestIdentitiesGoToSnowflakeAlone: not to a host that the connection chose, not to a page that redirects, and the
// metadata services of clouds are reached only for the sign-in that is by them.
func TestIdentitiesGoToSnowflakeAlone(t *testing.T) {
	for _, dsn := range []string{
		"snowflake://evil.example:443/DB?account=a&authenticator=workload_identity&workload_identity_provider=oidc",
		"snowflake://acme/DB?host=snowflakecomputing.com.evil.example&authenticator=workload_identity&workload_identity_provider=aws",
	} {
		if _, err := parseDSN(dsn); err == nil || !strings.Contains(err.Error(), "none of Snowflake's") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	if _, err := parseDSN("snowflake://acme.privatelink.snowflakecomputing.com/DB?authenticator=workload_identity" +
		"&workload_identity_provider=gcp"); err != nil {
		t.Error(err)
	}
	if _, err := parseDSN("snowflake://acme/DB?authenticator=workload_identity&workload_identity_provider=azure" +
		"&workload_identity_entra_resource=api://fd3f753b-eed3-462c-b6a7-a4b5bb650aad"); err != nil {
		t.Error(err)
	}
	// Any program may listen on a port of this machine.
	taker := newAccount(t)
	t.Setenv("THEIR_TOKEN", newIssuer(t).token(t, time.Hour, audience))
	t.Setenv(identityVariable, "env:THEIR_TOKEN, aws, azure, gcp")
	for _, provider := range []string{providerOIDC, providerAWS, providerAzure, providerGCP} {
		db := openDSN(
			t,
			taker.dsn("authenticator=workload_identity", "workload_identity_provider="+provider),
			target.Config{},
		)
		if _, err := db.Check(t.Context()); err == nil || !strings.Contains(engine.ErrorText(err), "stand-in") {
			t.Errorf("%s on this machine: %v", provider, err)
		}
	}
	if len(taker.paths) != 0 {
		t.Errorf("a program of this machine was asked: %v", taker.paths)
	}
	allowed := func(string) string { return "gcp,azure" }
	for address, want := range map[string]map[string]bool{
		"http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity": {providerGCP: true},
		"http://metadata.google.internal/computeMetadata/v1/instance/attributes/secret":                 {},
		"http://169.254.169.254/metadata/identity/oauth2/token":                                         {providerAzure: true},
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/":                             {},
	} {
		for _, provider := range []string{"", providerOIDC, providerAWS, providerAzure, providerGCP} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
			if got := asksMachine(provider, r, allowed); got != want[provider] {
				t.Errorf("%s of %q: %v", address, provider, got)
			}
			if asksMachine(provider, r, func(string) string { return "" }) {
				t.Errorf("%s is asked though nobody allowed it", address)
			}
		}
	}
	turned := 0
	secretTaker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stolen" {
			turned++
		}
		http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
	}))
	defer secretTaker.Close()
	db := openDSN(t, "snowflake://"+strings.TrimPrefix(secretTaker.URL, "http://")+"/?account=a&protocol=http&"+url.Values{
		"authenticator": {"oauth_client_credentials"}, "oauth_client_id": {"c"}, "oauth_client_secret": {"s"},
		"oauth_token_request_url": {secretTaker.URL}}.Encode(), target.Config{})
	defer func() { _ = db.Close() }()
	if _, err := db.Check(t.Context()); err == nil || turned > 0 {
		t.Errorf("a redirect was followed %d times: %v", turned, err)
	}
}

// TestDSNsOfFederatedSignIns: what is missing or does not fit is named.
func TestDSNsOfFederatedSignIns(t *testing.T) {
	for parameters, want := range map[string]string{
		"authenticator=oauth_client_credentials":                                                                              "oauth_client_id",
		"authenticator=oauth_client_credentials&oauth_client_id=c&oauth_client_secret=s":                                      "oauth_token_request_url",
		"authenticator=oauth_client_credentials&oauth_client_id=c&oauth_client_secret=s&oauth_token_request_url=http://idp/t": "https only",
		"authenticator=oauth_client_credentials&oauth_client_id=c&oauth_client_secret=s&oauth_token_request_url=idp":          "no address",
		"oauth_client_secret=s&token=t":                                               "is by programmatic_access_token",
		"authenticator=workload_identity":                                             "identity provider",
		"authenticator=workload_identity&workload_identity_provider=oidc&token=x.y.z": "would have ended",
		"authenticator=workload_identity&workload_identity_provider=azure&workload_identity_entra_resource=" +
			"https://management.azure.com/": "no Entra token",
		"authenticator=workload_identity&workload_identity_provider=azure&workload_identity_entra_resource=" +
			"api://a%26client_id=other": "no Entra token",
		"workload_identity_provider=aws&token=t": "the sign-in is by programmatic_access_token",
	} {
		if _, err := parseDSN("u@acme?" + parameters); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", parameters, err)
		}
	}
	const dsn = "snowflake://acme/DB?authenticator=oauth_client_credentials&oauth_client_id=c&oauth_client_secret=top" +
		"&oauth_token_request_url=https%3A%2F%2Fidp.example%2Ftoken"
	shown, _ := dsnReader{}.Redact(dsn)
	if strings.Contains(shown, "top") || !strings.Contains(shown, "oauth_client_secret="+target.Mask) {
		t.Errorf("shown as %s", shown)
	}
	if again, err := (dsnReader{}).RestoreSecrets(shown+"&role=R", dsn); err != nil || !strings.Contains(again, "top") {
		t.Errorf("restored as %s, %v", again, err)
	}
	// The secret does not follow to another server.
	if _, err := (dsnReader{}).RestoreSecrets(strings.Replace(shown, "idp.example", "evil.example", 1), dsn); err == nil {
		t.Error("the secret went to another authorization server")
	}
	if err := (dsnReader{}).Validate(strings.Replace(dsn, "idp.example", "169.254.169.254", 1)); err == nil {
		t.Error("a metadata service is taken for an authorization server")
	}
}
