package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// TestEveryRouteRefusesAStranger goes through what is registered, so that a new
// route cannot be forgotten.
func TestEveryRouteRefusesAStranger(t *testing.T) {
	t.Parallel()
	b := start(t)
	open := map[string]bool{"GET /healthz": true, "GET /readyz": true, "POST /api/auth/signin": true,
		"GET /shared/:id": true, "GET /api/auth/ways": true}
	seen := 0
	for _, r := range b.srv.Routes() {
		path := strings.NewReplacer(":id", "x", ":name", "x").Replace(r.Path)
		if open[r.Method+" "+r.Path] || r.Method == http.MethodHead && open["GET "+r.Path] {
			continue
		}
		seen++
		for name, header := range map[string][]string{
			"nothing":         {"Authorization", ""},
			"no token":        {"Authorization", "Bearer lst_" + strings.Repeat("A", 43)},
			"garbage":         {"Authorization", "Bearer ' or 1=1"},
			"other scheme":    {"Authorization", "Basic YWRtaW46YWRtaW4="},
			"no session":      {"Authorization", "", "Cookie", auth.CookieName + "=lss_" + strings.Repeat("A", 43)},
			"token as cookie": {"Authorization", "", "Cookie", auth.CookieName + "=" + b.token},
		} {
			a := b.do(r.Method, path, nil, header...)
			if a.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s with %s: status %d: %s", r.Method, path, name, a.StatusCode, a.body)
			}
			if r.Method != http.MethodHead {
				a.problem(t, 401, engine.CodeUnauthorized)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d routes were tried", seen)
	}
	for _, path := range []string{"/api/runs/", "/api/nope", "/api", "/ws", "/ws/runs/x/", "/metrics/", "/apis",
		"//api/runs", "/x/../api/runs", "/./api/runs", "/%61pi/runs", "/API/runs"} {
		a := b.do("GET", path, nil, "Authorization", "")
		if a.StatusCode == http.StatusOK && !strings.Contains(string(a.body), "<title>page</title>") {
			t.Errorf("%s answers a stranger: %s", path, a.body)
		}
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := start(t)
	link, err := b.srv.SignInLink(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(link, b.base+"/signin?token=")
	if !ok {
		t.Fatalf("link %s", link)
	}
	a := b.do("POST", "/api/auth/signin", map[string]any{"token": token}, "Authorization", "").want(t, 200)
	set := a.Header.Get("Set-Cookie")
	for _, want := range []string{auth.CookieName + "=lss_", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="} {
		if !strings.Contains(set, want) {
			t.Errorf("cookie %q lacks %s", set, want)
		}
	}
	if strings.Contains(set, "Secure") {
		t.Errorf("cookie %q would not come back over HTTP", set)
	}
	if decode[map[string]map[string]any](t, a)["user"]["role"] != "admin" {
		t.Errorf("answer %s", a.body)
	}
	b.do("POST", "/api/auth/signin", map[string]any{"token": token}, "Authorization", "").problem(t, 401,
		engine.CodeUnauthorized)

	cookie := strings.SplitN(set, ";", 2)[0]
	asBrowser := []string{"Authorization", "", "Cookie", cookie}
	b.do("GET", "/api/auth/me", nil, asBrowser...).want(t, 200)
	b.do("POST", "/api/auth/signout", nil, asBrowser...).want(t, 204)
	b.do("GET", "/api/auth/me", nil, asBrowser...).problem(t, 401, engine.CodeUnauthorized)
	for _, action := range []string{"auth.signin", "auth.signout"} {
		if !strings.Contains(strings.Join(b.store.actions(), " "), action) {
			t.Errorf("%s is not in the audit log", action)
		}
	}
}

func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	b := start(t)
	var a answer
	for range 11 {
		a = b.do("POST", "/api/auth/signin", map[string]any{"token": "guess"}, "Authorization", "")
	}
	a.problem(t, 429, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	b := start(t)
	made := decode[map[string]any](t,
		b.do("POST", "/api/auth/tokens", map[string]any{"name": "ci", "expires_in_days": 30}).want(t, 201))
	secret := made["secret"].(string)
	if !strings.HasPrefix(secret, "lst_") || made["expires_at"] == nil {
		t.Errorf("token %v", made)
	}
	b.store.mu.Lock()
	for _, hash := range b.store.hashes {
		if strings.Contains(string(hash[:]), secret) {
			t.Error("the secret is stored")
		}
	}
	before := b.store.uses
	b.store.mu.Unlock()
	for range 20 {
		b.do("GET", "/api/auth/me", nil, "Authorization", "Bearer "+secret).want(t, 200)
	}
	b.store.mu.Lock()
	if used := b.store.uses - before; used != 1 {
		t.Errorf("20 requests asked the store %d times", used)
	}
	b.store.mu.Unlock()
	list := b.do("GET", "/api/auth/tokens", nil).want(t, 200)
	if strings.Contains(string(list.body), secret) || !strings.Contains(string(list.body), `"ci"`) {
		t.Errorf("list %s", list.body)
	}
	b.do("DELETE", "/api/auth/tokens/"+made["token_id"].(string), nil).want(t, 204)
	b.do("GET", "/api/auth/me", nil, "Authorization", "Bearer "+secret).problem(t, 401, engine.CodeUnauthorized)
	b.do("DELETE", "/api/auth/tokens/"+made["token_id"].(string), nil).problem(t, 404, engine.CodeNotFound)
}

func TestCrossSiteRequestsAreRefused(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.PublicURL = "" })
	cookie := b.session()
	host := strings.TrimPrefix(b.base, "http://")
	for _, c := range []struct {
		name   string
		header []string
		status int
	}{
		{"own page", []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 201},
		{"own page, older browser", []string{"Origin", "http://" + host}, 201},
		{"no browser", nil, 201},
		{"another site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another site, older browser", []string{"Origin", "https://evil.example"}, 403},
		{"another port", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"sandboxed", []string{"Origin", "null"}, 403},
		{"sibling domain", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"forwarded host without a trusted proxy",
			[]string{"Origin", "https://evil.example", "X-Forwarded-Host", "evil.example"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := append([]string{"Authorization", "", "Cookie", cookie.Name + "=" + cookie.Value}, c.header...)
			a := b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, header...)
			a.want(t, c.status)
			if c.status == 403 {
				a.problem(t, 403, engine.CodeForbidden)
				b.do("GET", "/api/auth/me", nil, header...).want(t, 200) // reading is the browser's business
			}
		})
	}
	// A bearer token is no ambient authority.
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, "Origin", "https://elsewhere.example").want(t, 201)
}

func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) {
		o.Proxies, o.PublicURL, o.Hosts = loopbackProxy(t), "https://load.example/", hosts(t, "load.example")
	})
	link, err := b.srv.SignInLink(context.Background())
	if err != nil || !strings.HasPrefix(link, "https://load.example/signin?token=lsi_") {
		t.Fatalf("link %s, %v", link, err)
	}
	_, token, _ := strings.Cut(link, "token=")
	a := b.do("POST", "/api/auth/signin", map[string]any{"token": token}, "Authorization", "", "X-Forwarded-Proto",
		"https", "X-Forwarded-Host", "load.example", "Origin", "https://load.example").want(t, 200)
	if cookie := a.Header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-loadstone_session=") ||
		!strings.Contains(cookie, "Secure") {
		t.Errorf("cookie %q", a.Header.Get("Set-Cookie"))
	}
}

// TestATokenThatLetsNobodyInSaysSo: to a program, in the same words whatever is wrong with it, and with nothing of a
// browser's sign-in.
func TestATokenThatLetsNobodyInSaysSo(t *testing.T) {
	t.Parallel()
	b := start(t)
	expired, err := b.srv.APIToken(context.Background(), "old", time.Now().Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	revoked := decode[map[string]any](t, b.do("POST", "/api/auth/tokens", map[string]any{"name": "ci"}).want(t, 201))
	b.do("DELETE", "/api/auth/tokens/"+revoked["token_id"].(string), nil).want(t, 204)
	unknown, _ := auth.NewSecret(auth.PrefixAPI)
	operator, _ := auth.NewSecret(auth.PrefixOperator)
	session, _ := auth.NewSecret(auth.PrefixSession)
	message := map[string]string{}
	for name, header := range map[string]string{"expired": "Bearer " + expired, "revoked": "Bearer " +
		revoked["secret"].(string), "unknown": "Bearer " + unknown, "garbage": "Bearer lst_wrong", "operator": "Bearer " +
		operator, "a session's": "Bearer " + session, "none": "Bearer", "another scheme": "Basic YWRtaW46YWRtaW4="} {
		p := b.do("GET", "/api/auth/me", nil, "Authorization", header).problem(t, 401, engine.CodeUnauthorized)
		if message[p.Detail+"\n"+p.Hint] = name; !strings.Contains(p.Detail, "token") || strings.Contains(p.Hint, "browser") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(message) != 1 {
		t.Errorf("what is wrong with a token is told apart: %v", message)
	}
	p := b.do("GET", "/api/auth/me", nil, "Authorization", "").problem(t, 401, engine.CodeUnauthorized)
	if !strings.Contains(p.Detail, "not signed in") {
		t.Errorf("without a token: %+v", p)
	}
}
