package snowsim

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/snowflakedb/gosnowflake/v2"
)

func keyPair(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// code is Snowflake's number in an error of the driver.
func code(err error) int {
	var e *gosnowflake.SnowflakeError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// TestLoginAsAMadeRole: a role that CREATE ROLE made may sign in, on a warehouse that it may use.
func TestLoginAsAMadeRole(t *testing.T) {
	t.Parallel()
	s := start(t, whole)
	admin := single(t, open(t, config(t, s.DSN())))
	exec(t, admin, "CREATE ROLE bench")
	as := config(t, s.DSN())
	as.Role = "bench"
	if _, err := open(t, as).ExecContext(t.Context(), "SELECT 1"); code(err) != 390201 {
		t.Errorf("without the warehouse: %v", err)
	}
	exec(t, admin, "GRANT USAGE ON WAREHOUSE "+DefaultWarehouse+" TO ROLE bench")
	if _, err := open(t, as).ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("with it: %v", err)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	key, public := keyPair(t)
	other, _ := keyPair(t)
	s := start(t, func(o *Options) {
		o.Users = []User{{Name: "ANN", Password: "p@ss/w:rd", PublicKey: public,
			Tokens: map[string]bool{"pat": true, "old": false}, OAuthTokens: map[string]bool{"oauth": true, "stale": false}},
			{Name: "MFA", Password: "secret", MFA: true}, {Name: "SERVICE", PublicKey: public}}
		o.Roles = []string{"ANALYST"}
	})
	for _, c := range []struct {
		name   string
		change func(*gosnowflake.Config)
		want   int
	}{
		{"password", func(*gosnowflake.Config) {}, 0},
		{"wrong password", func(c *gosnowflake.Config) { c.Password = "wrong" }, 390100},
		{"unknown user", func(c *gosnowflake.Config) { c.User = "BOB" }, 390100},
		{"user without a password", func(c *gosnowflake.Config) { c.User = "SERVICE"; c.Password = "x" }, 390100},
		{"unknown account", func(c *gosnowflake.Config) { c.Account = "elsewhere" }, 260008},
		{"key pair", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypeJwt; c.PrivateKey = key }, 0},
		{"another's key", func(c *gosnowflake.Config) {
			c.Authenticator = gosnowflake.AuthTypeJwt
			c.PrivateKey = other
		}, 390144},
		{"expired key pair", func(c *gosnowflake.Config) {
			c.Authenticator = gosnowflake.AuthTypeJwt
			c.PrivateKey = key
			c.JWTExpireTimeout = -time.Hour //nolint:staticcheck // there is no other way to ask for it
		}, 390144},
		{"access token", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypePat; c.Token = "pat" }, 0},
		{"revoked access token", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypePat; c.Token = "old" },
			394400},
		{"wrong access token", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypePat; c.Token = "x" },
			394400},
		{"OAuth", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypeOAuth; c.Token = "oauth" }, 0},
		{"expired OAuth", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypeOAuth; c.Token = "stale" },
			390318},
		{"wrong OAuth", func(c *gosnowflake.Config) { c.Authenticator = gosnowflake.AuthTypeOAuth; c.Token = "x" }, 390303},
		{"another's OAuth", func(c *gosnowflake.Config) {
			c.Authenticator = gosnowflake.AuthTypeOAuth
			c.Token = "oauth"
			c.User = "MFA"
		}, 390309},
		{"second factor demanded", func(c *gosnowflake.Config) { c.User = "MFA"; c.Password = "secret" }, 394508},
		{"second factor given", func(c *gosnowflake.Config) { c.User = "MFA"; c.Password = "secret"; c.Passcode = "123456" },
			0},
		{"role", func(c *gosnowflake.Config) { c.Role = "analyst" }, 0},
		{"unknown role", func(c *gosnowflake.Config) { c.Role = "NOBODY" }, 390189},
		{"unknown warehouse", func(c *gosnowflake.Config) { c.Warehouse = "NOTHING" }, 390201},
		{"unknown warehouse that is not looked at", func(c *gosnowflake.Config) {
			c.Warehouse = "NOTHING"
			c.ValidateDefaultParameters = gosnowflake.ConfigBoolFalse
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := config(t, s.DSN())
			c.change(conf)
			db := open(t, conf)
			defer db.Close()
			err := db.PingContext(t.Context())
			if got := code(err); got != c.want || c.want == 0 && err != nil {
				t.Errorf("error %d, not %d: %v", got, c.want, err)
			}
		})
	}
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func FuzzCheckJWT(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJTTk9XU0lNLkFOTiJ9.AAAA")
	s := &Server{users: map[string]*user{}, opts: Options{Account: DefaultAccount}}
	f.Fuzz(func(t *testing.T, token string) {
		if who, err := s.checkJWT(token); err == nil {
			t.Fatalf("%q is %v", token, who)
		}
	})
}
