package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
)

const password = "correct horse battery"

// invite makes a user and returns it with the token of its invitation.
func (b *bench) invite(name string, role store.Role) (store.User, string) {
	b.t.Helper()
	made := decode[api.Invitation](b.t,
		b.do("POST", "/api/users", map[string]any{"name": name, "role": role}).want(b.t, 201))
	link, err := url.Parse(made.URL)
	if err != nil || !strings.HasPrefix(made.URL, b.base+"/join?") || link.Query().Get("name") != name {
		b.t.Fatalf("link %q %v", made.URL, err)
	}
	return made.User, link.Query().Get("invitation")
}

// cookieOf is the session that an answer sets, as a header.
func cookieOf(t *testing.T, a answer) []string {
	t.Helper()
	for _, c := range a.Cookies() {
		if c.Name == auth.CookieName && c.Value != "" {
			return []string{"Authorization", "", "Cookie", c.Name + "=" + c.Value}
		}
	}
	t.Fatalf("no session in %v", a.Header)
	return nil
}

// join makes a user with a password and returns its session.
func (b *bench) join(name string, role store.Role) (store.User, []string) {
	b.t.Helper()
	u, invitation := b.invite(name, role)
	return u, cookieOf(b.t, b.do("POST", "/api/auth/signin",
		map[string]any{"invitation": invitation, "password": password}, "Authorization", "").want(b.t, 200))
}

func (b *bench) signIn(name, password string, header ...string) answer {
	b.t.Helper()
	return b.do("POST", "/api/auth/signin", map[string]any{"name": name, "password": password},
		append([]string{"Authorization", ""}, header...)...)
}

// TestFromInvitationToSignIn goes the way of a new user.
func TestFromInvitationToSignIn(t *testing.T) {
	t.Parallel()
	b := start(t)
	ada, invitation := b.invite("ada@example.com", store.RoleOperator)
	b.do("POST", "/api/users", map[string]any{"name": "ADA@example.com", "role": "viewer"}).
		problem(t, 409, engine.CodeConflict)
	b.do("POST", "/api/users", map[string]any{"name": "x y", "role": "viewer"}).problem(t, 422, engine.CodeInvalid)
	b.do("POST", "/api/users", map[string]any{"name": "x", "role": "god"}).problem(t, 422, engine.CodeInvalid)
	b.signIn("ada@example.com", "").problem(t, 422, engine.CodeInvalid)
	b.signIn("ada@example.com", password).problem(t, 401, engine.CodeUnauthorized) // there is none yet
	accept := func(invitation, password string) answer {
		return b.do("POST", "/api/auth/signin", map[string]any{"invitation": invitation, "password": password},
			"Authorization", "")
	}
	for _, bad := range []string{"short", strings.Repeat("a", 20), strings.Repeat("long", 60), "ada@example.com"} {
		if p := accept(invitation, bad).problem(t, 422, engine.CodeInvalid); p.Errors[0].Field != "password" {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	guess, _ := auth.NewSecret(auth.PrefixInvite)
	accept(guess, password).problem(t, 401, engine.CodeUnauthorized)
	session := cookieOf(t, accept(invitation, password).want(t, 200))
	accept(invitation, password).problem(t, 401, engine.CodeUnauthorized)
	me := decode[api.Me](t, b.do("GET", "/api/auth/me", nil, session...).want(t, 200))
	if me.User.UserID != ada.UserID || me.User.Role != store.RoleOperator || !me.User.HasPassword {
		t.Errorf("me %+v", me)
	}
	b.signIn("ADA@EXAMPLE.COM", password).want(t, 200)
	b.signIn("ada@example.com", strings.ToUpper(password)).problem(t, 401, engine.CodeUnauthorized)
	b.do("POST", "/api/auth/signin", map[string]any{"name": "ada", "token": "x"}, "Authorization", "").
		problem(t, 422, engine.CodeInvalid)

	// Another password ends the other sessions.
	other := cookieOf(t, b.signIn("ada@example.com", password).want(t, 200))
	change := func(now, next string) answer {
		return b.do("PUT", "/api/auth/password", map[string]any{"password": now, "new_password": next}, session...)
	}
	change("wrong", "another horse battery").problem(t, 422, engine.CodeInvalid)
	change(password, "ada@example.com1").problem(t, 422, engine.CodeInvalid)
	session = cookieOf(t, change(password, "another horse battery").want(t, 200))
	b.do("GET", "/api/auth/me", nil, other...).problem(t, 401, engine.CodeUnauthorized)
	b.do("GET", "/api/auth/me", nil, session...).want(t, 200)
	list := decode[api.TokenList](t, b.do("GET", "/api/auth/tokens?kind=session", nil, session...).want(t, 200))
	if len(list.Tokens) != 1 {
		t.Errorf("sessions %+v", list)
	}
	// A token cannot.
	b.do("PUT", "/api/auth/password", map[string]any{"new_password": password}).problem(t, 403, engine.CodeForbidden)

	// A link of an admin's is a way back.
	made := decode[api.Invitation](t, b.do("POST", "/api/users/"+ada.UserID+"/invitation", "{}").want(t, 201))
	link, _ := url.Parse(made.URL)
	accept(link.Query().Get("invitation"), "a third horse battery").want(t, 200)
	b.do("GET", "/api/auth/me", nil, session...).problem(t, 401, engine.CodeUnauthorized)
	b.do("POST", "/api/users/nobody/invitation", "{}").problem(t, 404, engine.CodeNotFound)
	for _, action := range []string{"user.create", "user.invite", "user.password", "auth.signin"} {
		if !strings.Contains(strings.Join(b.store.actions(), " "), action) {
			t.Errorf("%s is not in the audit log: %v", action, b.store.actions())
		}
	}
	if text := b.log.String(); strings.Contains(text, password) || strings.Contains(text, invitation) {
		t.Error("a secret is in the log")
	}
}

// TestWhatAUserMayChangesAtOnce changes roles, locks users out and deletes them, while they are signed in.
func TestWhatAUserMayChangesAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	ada, session := b.join("ada", store.RoleOperator)
	create := func() answer { return b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}, session...) }
	mint := func(in map[string]any) answer { return b.do("POST", "/api/auth/tokens", in, session...) }
	token := decode[map[string]any](t, mint(map[string]any{"name": "ci"}).want(t, 201))
	program := []string{"Authorization", "Bearer " + token["secret"].(string)}
	create().want(t, 201)
	b.do("GET", "/api/auth/me", nil, program...).want(t, 200)
	change := func(id string, to map[string]any) answer { return b.do("PATCH", "/api/users/"+id, to) }

	change(ada.UserID, map[string]any{}).problem(t, 422, engine.CodeInvalid)
	change(ada.UserID, map[string]any{"role": "viewer"}).want(t, 200)
	if p := create().problem(t, 403, engine.CodeForbidden); !strings.Contains(p.Detail, "viewer") {
		t.Errorf("refusal %+v", p)
	}
	b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}, program...).problem(t, 403, engine.CodeForbidden)
	mint(map[string]any{"name": "w", "scope": "write"}).problem(t, 422, engine.CodeInvalid)
	narrow := decode[map[string]any](t, mint(map[string]any{"name": "r"}).want(t, 201))
	if narrow["scope"] != auth.ScopeRead {
		t.Errorf("a viewer's token: %v", narrow)
	}
	change(ada.UserID, map[string]any{"role": "admin"}).want(t, 200)
	b.do("GET", "/api/users", nil, session...).want(t, 200)

	change(ada.UserID, map[string]any{"disabled": true}).want(t, 200)
	b.do("GET", "/api/auth/me", nil, session...).problem(t, 401, engine.CodeUnauthorized)
	b.do("GET", "/api/auth/me", nil, program...).problem(t, 401, engine.CodeUnauthorized)
	b.signIn("ada", password).problem(t, 401, engine.CodeUnauthorized)
	b.do("POST", "/api/users/"+ada.UserID+"/invitation", "{}").problem(t, 409, engine.CodeConflict)
	change(ada.UserID, map[string]any{"disabled": false}).want(t, 200)
	b.do("GET", "/api/auth/me", nil, program...).want(t, 200)

	list := decode[api.UserList](t, b.do("GET", "/api/users", nil).want(t, 200))
	if len(list.Users) != 2 || list.Users[0].Name != "ada" || list.Users[1].Name != "admin" {
		t.Fatalf("users %+v", list)
	}
	first := list.Users[1].UserID
	b.do("DELETE", "/api/users/"+ada.UserID, nil).want(t, 204)
	b.do("GET", "/api/auth/me", nil, program...).problem(t, 401, engine.CodeUnauthorized)
	b.do("DELETE", "/api/users/"+ada.UserID, nil).problem(t, 404, engine.CodeNotFound)
	// Of two admins who saw the same role the second is told; the log has what was and what is.
	eve, _ := b.join("eve", store.RoleViewer)
	change(eve.UserID, map[string]any{"role": "operator", "was": "viewer"}).want(t, 200)
	late := change(eve.UserID, map[string]any{"role": "admin", "was": "viewer"})
	if p := late.problem(t, 409, engine.CodeConflict); p.Hint == "" || len(p.Errors) != 1 || p.Errors[0].Field != "was" ||
		!strings.Contains(p.Detail, "operator") {
		t.Errorf("who came second is told %+v", p)
	}
	if found := b.lines("action=user.role"); len(found) != 3 || found[0].Detail != "viewer → operator" {
		t.Errorf("the log has %+v", found)
	}
	// So it is for who locks it out, lets it in or deletes it.
	change(eve.UserID, map[string]any{"disabled": true, "was": "operator", "was_disabled": false}).want(t, 200)
	for name, late := range map[string]answer{
		"locks out":            change(eve.UserID, map[string]any{"disabled": true, "was_disabled": false}),
		"deletes":              b.do("DELETE", "/api/users/"+eve.UserID+"?was_disabled=false", nil),
		"deletes another role": b.do("DELETE", "/api/users/"+eve.UserID+"?was=viewer&was_disabled=true", nil),
	} {
		if p := late.problem(t, 409, engine.CodeConflict); p.Hint == "" || !strings.Contains(p.Detail, "eve") {
			t.Errorf("who %s second is told %+v", name, p)
		}
	}
	b.do("DELETE", "/api/users/"+eve.UserID+"?was=operator&was_disabled=true", nil).want(t, 204)
	// The last admin stays.
	b.do("DELETE", "/api/users/"+first, nil).problem(t, 409, engine.CodeConflict)
	change(first, map[string]any{"disabled": true}).problem(t, 409, engine.CodeConflict)
	change(first, map[string]any{"role": "operator"}).problem(t, 409, engine.CodeConflict)
	b.do("GET", "/api/users", nil).want(t, 200)
}

// TestAFloodOfPasswords guesses one user's password from many addresses, and many users' from one.
func TestAFloodOfPasswords(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Proxies = loopbackProxy(t) })
	b.join("ada", store.RoleViewer)
	b.join("eve", store.RoleViewer)
	wrong := strings.Repeat("horse ", 50) // too long to be compared, which takes time
	from := func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }
	refused := 0
	for i := range 24 {
		if a := b.signIn("ada", wrong, "X-Forwarded-For", from(i)); a.StatusCode == http.StatusTooManyRequests {
			refused++
			if a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if refused < 3 {
		t.Errorf("%d of 24 guesses about one user were refused unheard", refused)
	}
	b.signIn("ADA", password, "X-Forwarded-For", from(100)).want(t, 429)
	b.signIn("eve", password, "X-Forwarded-For", from(101)).want(t, 200)
	refused = 0
	for i := range 14 {
		if b.signIn(fmt.Sprintf("user%d", i), wrong, "X-Forwarded-For", from(200)).StatusCode ==
			http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 3 {
		t.Errorf("%d of 14 guesses from one address were refused unheard", refused)
	}
}
