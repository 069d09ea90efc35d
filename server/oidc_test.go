package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/oidc"
)

// idp is a provider that does as a test tells it, well or not.
type idp struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any                     // of the next ID token
	sign   func(claims map[string]any) string // nil signs as it should
	codes  map[string]url.Values              // what each code was asked for with
	used   map[string]bool                    // codes that were exchanged
	away   bool
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key, codes: map[string]url.Values{}, used: map[string]bool{}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.away {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth",
			"token_endpoint": p.URL + "/token",
			"jwks_uri":       p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256",
			Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = r.ParseForm()
		code := r.Form.Get("code")
		requested, known := p.codes[code]
		proof := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !known || p.used[code] || base64.RawURLEncoding.EncodeToString(proof[:]) != requested.Get("code_challenge") ||
			r.Form.Get("redirect_uri") != requested.Get("redirect_uri") {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]string{"error": "invalid_grant"})
			return
		}
		p.used[code] = true
		now := time.Now().Unix()
		claims := map[string]any{"iss": p.URL, "aud": "loadstone", "sub": "s-1", "nonce": requested.Get("nonce"), "iat": now,
			"exp": now + 60, "preferred_username": "ada", "groups": []string{"dba", "others"}}
		for k, v := range p.claims {
			if v == nil {
				delete(claims, k)
			} else {
				claims[k] = v
			}
		}
		token := signed(t, jose.RS256, key, claims)
		if p.sign != nil {
			token = p.sign(claims)
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": token})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func signed(t *testing.T, alg jose.SignatureAlgorithm, key any, claims map[string]any) string {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key},
		(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "k"))
	if err != nil {
		t.Error(err)
		return ""
	}
	text, _ := json.Marshal(claims)
	token, err := s.Sign(text)
	if err != nil {
		t.Error(err)
		return ""
	}
	out, _ := token.CompactSerialize()
	return out
}

// browser is one that begins a flow and comes back.
type browser struct {
	*bench
	p *idp
}

func single(t *testing.T, change ...func(*oidc.Options)) browser {
	t.Helper()
	return singleOn(t, func(change func(*server.Options)) *bench { return start(t, change) }, change...)
}

// singleOn is single on a server that is started so.
func singleOn(t *testing.T, start func(func(*server.Options)) *bench, change ...func(*oidc.Options)) browser {
	t.Helper()
	p := newIDP(t)
	o := oidc.Options{
		Issuer:       p.URL,
		ClientID:     "loadstone",
		ClientSecret: secret.New("shared"),
		Name:         "Example",
		GroupsClaim:  "groups",
		Roles:        map[string]store.Role{"dba": store.RoleOperator, "root": store.RoleAdmin},
	}
	for _, c := range change {
		c(&o)
	}
	b := start(func(s *server.Options) { s.OIDC = &o })
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return browser{b, p}
}

// begin presses the button: where the provider sends the browser back to, and its cookie.
func (b browser) begin(next string) (back url.Values, cookie string) {
	b.t.Helper()
	a := b.do("GET", "/api/auth/oidc/start?next="+url.QueryEscape(next), nil, "Authorization", "").want(b.t, 303)
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), b.p.URL+"/auth?") {
		b.t.Fatalf("sent to %q, %v", a.Header.Get("Location"), err)
	}
	requested := to.Query()
	if requested.Get("code_challenge_method") != "S256" || requested.Get("response_type") != "code" ||
		len(requested.Get("state")) < 40 || len(requested.Get("nonce")) < 40 || len(requested.Get("code_challenge")) != 43 ||
		requested.Get("redirect_uri") != b.base+"/api/auth/oidc/callback" {
		b.t.Errorf("asked with %v", requested)
	}
	name := "loadstone_oidc"
	secure := strings.HasPrefix(b.base, "https:")
	if secure {
		name = "__Host-" + name
	}
	for _, c := range a.Cookies() {
		if c.Name == name {
			if !c.HttpOnly || c.Secure != secure || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode ||
				c.MaxAge > 600 ||
				strings.Contains(c.Value, requested.Get("state")) {
				b.t.Errorf("cookie %+v", c)
			}
			cookie = c.Name + "=" + c.Value
		}
	}
	code := "code-" + requested.Get("state")[:8]
	b.p.mu.Lock()
	b.p.codes[code] = requested
	b.p.mu.Unlock()
	return url.Values{"code": {code}, "state": {requested.Get("state")}, "session_state": {"x"}, "iss": {b.p.URL}}, cookie
}

// TestSingleSignOnOverTLS: the cookie of a flow has the prefix that keeps other names' pages from setting it, and
// without the prefix it is none.
func TestSingleSignOnOverTLS(t *testing.T) {
	t.Parallel()
	b := singleOn(t, func(change func(*server.Options)) *bench { b, _ := overTLS(t, change); return b })
	v, cookie := b.begin("/")
	if cookie == "" {
		t.Fatal("no cookie of the flow with the prefix __Host-")
	}
	if a := b.back(v, strings.TrimPrefix(cookie, "__Host-")); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a cookie that a page without TLS can set: %d %s", a.StatusCode, a.body)
	}
	v, cookie = b.begin("/")
	if a := b.back(v, cookie).want(t, 303); !strings.Contains(strings.Join(a.Header.Values("Set-Cookie"), "\n"),
		"__Host-loadstone_session=") {
		t.Errorf("no session: %v", a.Header)
	}
}

func (b browser) back(v url.Values, cookie string, header ...string) answer {
	b.t.Helper()
	return b.do("GET", "/api/auth/oidc/callback?"+v.Encode(), nil,
		append([]string{"Authorization", "", "Cookie", cookie}, header...)...)
}

// whole goes through a flow.
func (b browser) whole(next string) answer {
	b.t.Helper()
	v, cookie := b.begin(next)
	return b.back(v, cookie)
}

func session(a answer) bool {
	return slices.ContainsFunc(a.Cookies(), func(c *http.Cookie) bool {
		return c.Name == auth.CookieName && c.Value != ""
	})
}

// TestSignInByProvider signs in, again with another role, and after being locked out.
func TestSignInByProvider(t *testing.T) {
	t.Parallel()
	b := single(t)
	a := b.whole("/runs/1?tab=log").want(t, 303)
	if a.Header.Get("Location") != "/runs/1?tab=log" {
		t.Errorf("goes on to %q", a.Header.Get("Location"))
	}
	who := func(a answer) store.User {
		t.Helper()
		return decode[api.Me](t, b.do("GET", "/api/auth/me", nil, cookieOf(t, a)...).want(t, 200)).User
	}
	ada := who(a)
	if ada.Name != "ada" || ada.Role != store.RoleOperator {
		t.Fatalf("user %+v", ada)
	}
	first := cookieOf(t, a)
	b.p.claims = map[string]any{"groups": "root", "preferred_username": "renamed"}
	if now := who(b.whole("/")); now.UserID != ada.UserID || now.Role != store.RoleAdmin || now.Name != "ada" {
		t.Errorf("the same subject in another group: %+v", now)
	}
	b.do("GET", "/api/users", nil, first...).want(t, 200) // the role holds for the session of before too
	b.p.claims = map[string]any{"groups": []any{"nothing", 7}}
	if a := b.whole("/"); a.StatusCode != http.StatusForbidden || session(a) {
		t.Errorf("without a role: %d", a.StatusCode)
	}
	b.p.claims = nil
	b.do("PATCH", "/api/users/"+ada.UserID, map[string]any{"disabled": true}).want(t, 200)
	if a := b.whole("/"); a.StatusCode != http.StatusForbidden || session(a) {
		t.Errorf("locked out: %d", a.StatusCode)
	}
	// Somebody else of that name, and a local user of it, are not the same.
	b.p.claims = map[string]any{"sub": "s-2", "preferred_username": "ADMIN"}
	if a := b.whole("/"); a.StatusCode != http.StatusConflict || session(a) {
		t.Errorf("the name of a local user: %d %s", a.StatusCode, a.body)
	}
	b.p.claims = map[string]any{"sub": "s-3", "preferred_username": nil, "email": "eve@example.com",
		"email_verified": false}
	if a := b.whole("/"); a.StatusCode != http.StatusForbidden || session(a) {
		t.Errorf("an address that nobody has verified: %d", a.StatusCode)
	}
	// A password would outlive what the provider says.
	b.p.claims = map[string]any{"sub": "s-4", "preferred_username": "bob"}
	bob := b.whole("/").want(t, 303)
	b.do("PUT", "/api/auth/password", map[string]any{"new_password": password}, cookieOf(t, bob)...).want(t, 409)
	b.do("POST", "/api/users/"+who(bob).UserID+"/invitation", "{}").want(t, 409)
	if got := b.lines("action=auth.signin&user=bob"); len(got) != 1 || got[0].Detail != "by the sign-in provider" {
		t.Errorf("noted as %+v", got)
	}
}

// TestTokensOfAHostileProviderAreRefused makes ID tokens that are wrong in one way each.
func TestTokensOfAHostileProviderAreRefused(t *testing.T) {
	t.Parallel()
	b := single(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := x509.MarshalPKIXPublicKey(b.p.key.Public())
	unsigned := func(c map[string]any) string {
		text, _ := json.Marshal(c)
		b64 := base64.RawURLEncoding.EncodeToString
		return b64([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + b64(text) + "."
	}
	past := time.Now().Add(-time.Hour).Unix()
	for name, c := range map[string]struct {
		claims map[string]any
		sign   func(map[string]any) string
	}{
		"issuer":                    {map[string]any{"iss": "https://evil.example"}, nil},
		"issuer's slash":            {map[string]any{"iss": b.p.URL + "/"}, nil},
		"audience":                  {map[string]any{"aud": "another"}, nil},
		"audiences":                 {map[string]any{"aud": []string{"loadstone", "another"}}, nil},
		"azp":                       {map[string]any{"azp": "another"}, nil},
		"nonce":                     {map[string]any{"nonce": "another"}, nil},
		"no nonce":                  {map[string]any{"nonce": nil}, nil},
		"expired":                   {map[string]any{"exp": past, "iat": past - 60}, nil},
		"no expiry":                 {map[string]any{"exp": nil}, nil},
		"of the future":             {map[string]any{"iat": past + 7200, "exp": past + 10800}, nil},
		"not yet":                   {map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, nil},
		"no subject":                {map[string]any{"sub": ""}, nil},
		"none":                      {nil, unsigned},
		"another key":               {nil, func(c map[string]any) string { return signed(t, jose.RS256, other, c) }},
		"another curve":             {nil, func(c map[string]any) string { return signed(t, jose.ES256, curve, c) }},
		"HS256 with the public key": {nil, func(c map[string]any) string { return signed(t, jose.HS256, public, c) }},
		"HS256 with the secret": {nil, func(c map[string]any) string {
			return signed(t, jose.HS256, append([]byte("shared"), make([]byte, 32)...), c)
		}},
		"no token": {nil, func(map[string]any) string { return "" }},
		"garbage":  {nil, func(map[string]any) string { return "a.b.c" }},
	} {
		b.p.mu.Lock()
		b.p.claims, b.p.sign = c.claims, c.sign
		b.p.mu.Unlock()
		if a := b.whole("/"); a.StatusCode != http.StatusUnauthorized || session(a) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	b.p.claims, b.p.sign = nil, nil
	b.whole("/").want(t, 303)
}

// TestReplayedAndForgedReturnsAreRefused comes back twice, by another browser, with another state, or unasked.
func TestReplayedAndForgedReturnsAreRefused(t *testing.T) {
	t.Parallel()
	b := single(t)
	v, cookie := b.begin("/")
	if !session(b.back(v, cookie).want(t, 303)) {
		t.Fatal("no session")
	}
	gone := func(what string, v url.Values, cookie string) {
		t.Helper()
		a := b.back(v, cookie)
		if a.StatusCode != http.StatusUnauthorized || session(a) {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
	}
	gone("again", v, cookie)
	b.p.used = map[string]bool{}
	gone("again, with a provider that takes codes twice", v, cookie)
	v, cookie = b.begin("/")
	gone("no cookie", v, "")
	gone("a cookie of somebody's making", v, "loadstone_oidc=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	_, other := b.begin("/")
	gone("another browser's cookie", v, other)
	gone("another issuer", url.Values{"code": v["code"], "state": v["state"], "iss": {"https://evil.example"}}, cookie)
	gone("another code", url.Values{"code": {"x"}, "state": v["state"]}, cookie)
	v, cookie = b.begin("/")
	gone("an error", url.Values{"error": {"access_denied"}, "state": v["state"]}, cookie)
	// A browser is shown the page, without a session and without the provider's words.
	v, cookie = b.begin("/")
	v.Set("state", "<script>")
	a := b.back(v, cookie, "Accept", "text/html").want(t, 303)
	if a.Header.Get("Location") != "/signin?refused=unauthorized" || session(a) {
		t.Errorf("a browser: %v", a.Header)
	}
}

// TestNobodyIsSentElsewhere tries addresses that lead away from the page.
func TestNobodyIsSentElsewhere(t *testing.T) {
	t.Parallel()
	b := single(t)
	for _, next := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example",
		"javascript:alert(1)", "", "evil", "/api/auth/signout", "/signin?next=/", "/" + strings.Repeat("x", 2000),
		"/\r\nSet-Cookie: a=b",
		"/%0d%0a", "///evil.example", "\\\\evil.example"} {
		a := b.whole(next).want(t, 303)
		if to := a.Header.Get("Location"); to != "/" && to != "/%0d%0a" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}

// TestAProviderThatIsAway keeps nobody from signing in by password.
func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	b := single(t)
	b.p.away = true
	b.do("GET", "/api/auth/oidc/start", nil, "Authorization", "").want(t, 503)
	paths := decode[api.Ways](t, b.do("GET", "/api/auth/ways", nil, "Authorization", "").want(t, 200))
	if paths.Provider != "Example" {
		t.Errorf("ways %+v", paths)
	}
	b.p.away = false
	b.whole("/").want(t, 303)
	plain := start(t)
	plain.do("GET", "/api/auth/oidc/start", nil, "Authorization", "").want(t, 401)
	paths = decode[api.Ways](t, plain.do("GET", "/api/auth/ways", nil, "Authorization", "").want(t, 200))
	if paths.Provider != "" {
		t.Errorf("ways %+v", paths)
	}
}

func TestProvidersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good := oidc.Options{Issuer: "https://login.example/realm", ClientID: "x", DefaultRole: store.RoleViewer}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*oidc.Options){
		"--oidc-issuer":       func(o *oidc.Options) { o.Issuer = "http://login.example" },
		"--oidc-client-id":    func(o *oidc.Options) { o.ClientID = "" },
		"--oidc-role-map":     func(o *oidc.Options) { o.Roles = map[string]store.Role{"g": "god"} },
		"--oidc-default-role": func(o *oidc.Options) { o.DefaultRole = "god" },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestBadTextsOfAProvider: whatever a provider writes into its claims signs nobody in under a name that cannot be read,
// gives no role that was not given, and leaves nothing in the log, the audit log or the page that is obeyed.
func TestBadTextsOfAProvider(t *testing.T) {
	t.Parallel()
	b := single(t)
	texts := []string{"<script>owned()</script>", "a\x1b]8;;http://x\x07b\x1b[2J\u009b31m", "\u202egnp.exe\u2066",
		"a\u200bb\ufeff", strings.Repeat("x", 10_000), "=HYPERLINK(\"http://x\")", "\t=1+1", "\r\nSet-Cookie: a=b",
		"a\x00b", "'; DROP TABLE users; --", "../../etc/passwd", "", " ", "two words"}
	for i, text := range texts {
		for claim, claims := range map[string]map[string]any{
			"sub":                {"sub": text, "preferred_username": fmt.Sprint("sub-", i)},
			"preferred_username": {"sub": fmt.Sprint("n-", i), "preferred_username": text, "email": nil},
			"email":              {"sub": fmt.Sprint("e-", i), "preferred_username": nil, "email": text},
			"groups": {"sub": fmt.Sprint("g-", i), "preferred_username": fmt.Sprint("g-", i),
				"groups": []any{text, "dba" + text}},
			"a group of its own": {"sub": fmt.Sprint("o-", i), "preferred_username": fmt.Sprint("o-", i),
				"groups": text + "dba"},
		} {
			b.p.mu.Lock()
			b.p.claims = claims
			b.p.mu.Unlock()
			a := b.whole("/")
			// A subject that can be shown is anybody's, and "" and "dba" together are a group that there is.
			good := claim == "sub" && text != "" && len(text) <= 255 && !strings.ContainsFunc(text, textsafe.IsControl) ||
				text == "" && (claim == "groups" || claim == "a group of its own")
			if session(a) != good || a.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s %.40q: %d, session %v: %.200s", claim, text, a.StatusCode, session(a), a.body)
			}
			if strings.ContainsFunc(a.Header.Get("Location"), textsafe.IsControl) {
				t.Errorf("%s %.40q: sent to %q", claim, text, a.Header.Get("Location"))
			}
		}
	}
	for _, path := range []string{"/api/users", "/api/audit?limit=500", "/api/v1/tokens?kind=session"} {
		text := strings.TrimSpace(string(b.do("GET", path, nil).want(t, http.StatusOK).body))
		if strings.ContainsFunc(text, textsafe.IsControl) {
			t.Errorf("%s holds what is obeyed", path)
		}
	}
	for line := range strings.Lines(b.log.String()) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), textsafe.IsControl) {
			t.Errorf("the log: %q", line)
		}
	}
}
