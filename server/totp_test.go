package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
	factor "github.com/loadstone-db/loadstone/server/auth"
)

// codeAt is what the app shows so many periods from now. A code is good once, so the test takes that of now to enrol,
// and the next one to sign in.
func codeAt(t *testing.T, secret string, periods int) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, time.Now().Add(time.Duration(periods)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// withPassword is a password as it is asked for before a second factor is made.
func withPassword(password string) map[string]any { return map[string]any{"password": password} }

// TestASecondFactor enrols a user, signs it in, and turns the factor off; an admin removes another.
func TestASecondFactor(t *testing.T) {
	t.Parallel()
	b := start(t)
	u, session := b.join("ada", store.RoleViewer)
	me := func(method, path string, in any) answer {
		t.Helper()
		return b.do(method, path, in, session...)
	}
	state := func() factor.State {
		t.Helper()
		return decode[factor.State](t, me("GET", "/api/auth/totp", nil).want(t, http.StatusOK))
	}
	signIn := func(with map[string]any) answer {
		t.Helper()
		return b.do("POST", "/api/auth/signin", with, "Authorization", "")
	}
	enrol := func() (secret string, codes []string) {
		t.Helper()
		started := decode[factor.Begun](t, me("POST", "/api/auth/totp", withPassword(password)).want(t, http.StatusCreated))
		if !strings.HasPrefix(started.QR, "<svg ") || !strings.Contains(started.URL, started.Secret) {
			t.Errorf("begun %+v", started)
		}
		b.signIn("ada", password).want(t, http.StatusOK) // what is not confirmed is asked of nobody
		wrong := me("POST", "/api/auth/totp/confirm", map[string]any{"code": "000000"})
		if p := wrong.problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid); p.Errors[0].Field != "code" {
			t.Errorf("problem %+v", p)
		}
		made := decode[api.RecoveryCodes](t, me("POST", "/api/auth/totp/confirm",
			map[string]any{"code": codeAt(t, started.Secret, 0)}).want(t, http.StatusOK))
		return started.Secret, made.Codes
	}
	if state().Enabled {
		t.Error("a second factor from nowhere")
	}
	// Somebody at a browser that was left open makes none.
	if p := me("POST", "/api/auth/totp", withPassword("wrong horse battery")).
		problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid); p.Errors[0].Field != "password" {
		t.Errorf("problem %+v", p)
	}
	if me("POST", "/api/auth/totp", map[string]any{}).StatusCode == http.StatusCreated {
		t.Error("a second factor without a password")
	}
	secret, codes := enrol()
	if s := state(); !s.Enabled || s.RecoveryLeft != 10 || len(codes) != 10 {
		t.Errorf("state %+v, codes %v", s, codes)
	}
	asks := func(a answer, says string) {
		t.Helper()
		p := a.problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
		if len(p.Errors) != 1 || p.Errors[0].Field != "code" || !strings.Contains(p.Errors[0].Message, says) ||
			a.Header.Get("Set-Cookie") != "" {
			t.Errorf("it answers %+v, with %q", p, a.Header)
		}
	}
	// Who has not typed the right password hears nothing of a second factor.
	if p := signIn(map[string]any{"name": "ada", "password": "wrong horse battery", "code": codes[0]}).
		problem(t, http.StatusUnauthorized, engine.CodeUnauthorized); len(p.Errors) != 0 {
		t.Errorf("a wrong password is told %+v", p)
	}
	asks(b.signIn("ada", password), "needed")
	asks(signIn(map[string]any{"name": "ada", "password": password, "code": "000000"}), "wrong")
	next := codeAt(t, secret, 1)
	in := map[string]any{"name": "ada", "password": password, "code": next}
	signIn(in).want(t, http.StatusOK)
	asks(signIn(in), "used already")
	in["code"] = codes[4]
	signIn(in).want(t, http.StatusOK)
	asks(signIn(in), "used already")
	// A link for a forgotten password stands for the password alone.
	second := decode[api.Invitation](t,
		b.do("POST", "/api/users/"+u.UserID+"/invitation", nil).want(t, http.StatusCreated))
	link := second.URL[strings.Index(second.URL, "invitation=")+len("invitation="):]
	link, _, _ = strings.Cut(link, "&")
	p := signIn(map[string]any{"invitation": link, "password": "another horse battery"}).
		problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	if !strings.Contains(p.Detail, "password is set") {
		t.Errorf("problem %+v", p)
	}
	in = map[string]any{"name": "ada", "password": "another horse battery", "code": codes[5]}
	session = cookieOf(t, signIn(in).want(t, http.StatusOK))

	// Off, by both.
	off := func(password, code string) answer {
		return me("POST", "/api/auth/totp/disable", map[string]any{"password": password, "code": code})
	}
	for field, a := range map[string]answer{"password": off(password, codes[6]),
		"code": off("another horse battery", "123456")} {
		if p := a.problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid); p.Errors[0].Field != field {
			t.Errorf("problem %+v", p)
		}
	}
	off("another horse battery", codes[6]).want(t, http.StatusNoContent)
	b.signIn("ada", "another horse battery").want(t, http.StatusOK)

	// An admin removes one whose app is lost; nobody else does, and no token.
	enrol2 := decode[factor.Begun](
		t,
		me("POST", "/api/auth/totp", withPassword("another horse battery")).want(t, http.StatusCreated),
	)
	me("POST", "/api/auth/totp/confirm", map[string]any{"code": codeAt(t, enrol2.Secret, 0)}).want(t, http.StatusOK)
	me("DELETE", "/api/users/"+u.UserID+"/totp", nil).problem(t, http.StatusForbidden, engine.CodeForbidden)
	b.do("POST", "/api/auth/totp", withPassword(password)).problem(t, http.StatusForbidden, engine.CodeForbidden)
	asks(b.signIn("ada", "another horse battery"), "needed")
	b.do("DELETE", "/api/users/none/totp", nil).problem(t, http.StatusNotFound, engine.CodeNotFound)
	b.do("DELETE", "/api/users/"+u.UserID+"/totp", nil).want(t, http.StatusNoContent)
	b.signIn("ada", "another horse battery").want(t, http.StatusOK)
	if found := b.lines("action=user.totp"); len(found) != 4 {
		t.Errorf("the log has %+v", found)
	}
	for _, e := range b.lines("action=user") {
		if strings.Contains(e.Detail+e.Object, secret) || strings.Contains(e.Detail, codes[0]) {
			t.Errorf("a secret is in the log: %+v", e)
		}
	}
}

// TestCodesAreGuessedSlowly, by who knows the password: as passwords are.
func TestCodesAreGuessedSlowly(t *testing.T) {
	t.Parallel()
	b := start(t)
	_, session := b.join("ada", store.RoleOperator)
	started := decode[factor.Begun](
		t,
		b.do("POST", "/api/auth/totp", withPassword(password), session...).want(t, http.StatusCreated),
	)
	b.do("POST", "/api/auth/totp/confirm", map[string]any{"code": codeAt(t, started.Secret, 0)}, session...).
		want(t, http.StatusOK)
	for n := range 20 {
		a := b.do("POST", "/api/auth/signin", map[string]any{"name": "ada", "password": password, "code": "000000"},
			"Authorization", "")
		if a.StatusCode == http.StatusTooManyRequests {
			if n < 5 || a.Header.Get("Retry-After") == "" {
				t.Errorf("after %d guesses: %v", n, a.Header)
			}
			return
		}
		a.want(t, http.StatusUnauthorized)
	}
	t.Error("20 codes were guessed at once")
}

// TestGuessesAreCountedApart: wrong links and wrong codes do not use up the tries of a password.
func TestGuessesAreCountedApart(t *testing.T) {
	t.Parallel()
	b := start(t)
	_, session := b.join("ada", store.RoleOperator)
	signIn := func(with map[string]any) answer {
		t.Helper()
		return b.do("POST", "/api/auth/signin", with, "Authorization", "")
	}
	link := func() answer { return signIn(map[string]any{"token": "lsi_" + strings.Repeat("A", 43)}) }
	for range 10 {
		link().problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	}
	link().want(t, http.StatusTooManyRequests)
	b.signIn("ada", password).want(t, http.StatusOK)
	started := decode[factor.Begun](t, b.do("POST", "/api/auth/totp", withPassword(password), session...).
		want(t, http.StatusCreated))
	b.do("POST", "/api/auth/totp/confirm", map[string]any{"code": codeAt(t, started.Secret, 0)}, session...).
		want(t, http.StatusOK)
	code := func() answer {
		return signIn(map[string]any{"name": "ada", "password": password, "code": "000000"})
	}
	for range 10 {
		code().problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	}
	code().want(t, http.StatusTooManyRequests)
	// The password is compared, and it is wrong: that is no guess of a code.
	b.signIn("ada", "wrong horse battery").problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
}
